"""Known causes of slow steps: how each is detected, what cures it, and where that is documented."""

from __future__ import annotations

from trainmark.analysis.causes import compiling, growth, loading, needless, operators, switches
from trainmark.analysis.causes.cause import Cause, Evidence, Found

KNOWN: tuple[type[Cause], ...] = (
    *switches.CAUSES,
    *growth.CAUSES,
    *compiling.CAUSES,
    *needless.CAUSES,
    *operators.CAUSES,
    *loading.CAUSES,
)
"""All known causes, in the order in which they are named if their shares are unknown."""


def find(evidence: Evidence) -> list[Found]:
    """Return the causes of which there is evidence.

    Switches come first, since only an experiment shows what they cost; then those with the largest
    share of the time.
    """
    every = (kind().find(evidence) for kind in KNOWN)
    found = [each for each in every if each is not None]
    return sorted(found, key=lambda each: -1.0 if each.share is None else -each.share)


__all__ = ["KNOWN", "Evidence", "Found", "find"]
