"""How long runs were, in the unit in which they were requested."""

from __future__ import annotations

from collections.abc import Iterable

from trainmark import units
from trainmark.analysis.results import GroupResult
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record


def asks_for_steps(record: Record) -> bool:
    """Return whether the length was requested in steps, not epochs."""
    return record.workload.view.schedule.steps is not None


def length(epochs: int, steps: int, *, by_steps: bool) -> str:
    """Return ``2 epochs, 938 steps``, or ``40 steps`` if steps were requested; empty if unknown."""
    parts = []
    if epochs and not (by_steps and steps > 0):
        parts.append(units.many(epochs, "epoch"))
    if steps:
        parts.append(units.many(steps, "step"))
    return ", ".join(parts)


def which_epoch(groups: Iterable[GroupResult]) -> str:
    """Return the kind of epoch that times and rates refer to."""
    has_one = any(Caveat.ONE_EPOCH in group.caveats for group in groups)
    return "the only epoch" if has_one else "a steady epoch"
