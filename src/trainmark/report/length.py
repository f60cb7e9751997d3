"""How long runs were, in the unit in which they were requested."""

from __future__ import annotations

from collections.abc import Iterable

from trainmark import units
from trainmark.analysis.results import GroupResult
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record


def asked_steps(record: Record) -> int | None:
    """Of a run that was to make so many; None where epochs were asked for."""
    schedule = record.workload.spec.get("schedule") or {}
    steps: int | None = schedule.get("steps")
    return steps


def length(epochs: int, steps: int, *, by_steps: bool) -> str:
    """Such as ``2 epochs, 938 steps``; of what was asked for in steps, ``40 steps``; empty where nothing is known."""
    parts = ((epochs, "epoch"), (steps, "step"))
    return ", ".join(units.many(number, noun) for number, noun in parts[by_steps and steps > 0 :] if number)


def which_epoch(groups: Iterable[GroupResult]) -> str:
    """Of which epoch times and rates are."""
    return "the only epoch" if any(Caveat.ONE_EPOCH in group.caveats for group in groups) else "a steady epoch"
