"""``--fail-below R``: which groups are certainly too slow."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trainmark.analysis.results import Comparison, GroupResult
from trainmark.errors import UsageError
from trainmark.record.caveats import Caveat


@dataclass(frozen=True)
class FailBelow:
    """Groups that clear the bar, miss it, or can't be judged.

    A group can't be judged if it has no bound or one that doesn't decide, or if other programs
    disturbed it too much.
    """

    ratio: float
    cleared: tuple[GroupResult, ...]
    missed: tuple[GroupResult, ...]
    unjudged: tuple[GroupResult, ...]
    disturbed: tuple[GroupResult, ...]


def fail_below(comparison: Comparison, ratio: float) -> FailBelow:
    """Compare every group except the references with the bar.

    A group misses it if the upper bound of its interval is below ``ratio``, so that noise alone
    never fails a build; also if it does not learn, or none of its runs or trainings finished. A
    group can't be judged if other processes disturbed it too much, or if only one bound of its
    interval is known and allows both.

    Raises:
        UsageError: ``ratio`` is not above 0.
    """
    if not 0 < ratio < math.inf:
        raise UsageError(
            "the value of --fail-below is out of range",
            expected="a number above 0",
            found=f"{ratio:g}",
        )
    found: dict[str, list[GroupResult]] = {}
    for position, group in enumerate(comparison.groups):
        if not comparison.is_reference(position):
            found.setdefault(_judged(group, ratio), []).append(group)
    return FailBelow(
        ratio,
        cleared=tuple(found.get("cleared", ())),
        missed=tuple(found.get("missed", ())),
        unjudged=tuple(found.get("unjudged", ())),
        disturbed=tuple(found.get("disturbed", ())),
    )


def _judged(group: GroupResult, ratio: float) -> str:
    if not (group.learns and group.runs) or group.breaks:
        return "missed"
    if Caveat.TOO_DISTURBED in group.caveats:
        return "disturbed"
    low = group.speedup.low
    high = group.speedup.high
    if high is not None and high < ratio:
        return "missed"
    is_above = low is not None and low >= ratio
    is_not_below = low is not None and high is not None
    return "cleared" if is_above or is_not_below else "unjudged"
