"""The one place where the clock of a training is read: at synchronised edges, with the backend's code alone between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainmark.backends.base import EpochPlan, Trainer

Clock = Callable[[], float]


def timed_epoch(
    trainer: Trainer,
    plan: EpochPlan,
    tick: Callable[[], None],
    clock: Clock,
    *,
    log_every: int | None = None,
    first_step: int = 0,
) -> tuple[list[tuple[int, float]], list[Any]]:
    """Train one epoch between two synchronised readings of the clock.

    Returns:
        Edges as (steps done, time), the first at 0 steps; and what each ``train`` returned. Without ``log_every``
        there are two edges; with it one behind every step whose number, from ``first_step`` on, it divides.
    """
    total = len(plan.sizes)
    results = []
    trainer.synchronize()
    edges = [(0, clock())]
    trainer.begin_epoch(plan)
    while (done := edges[-1][0]) < total:
        # As the published logs do: the first line is of step 0, then one every so many.
        count = total if log_every is None else log_every - (first_step + done - 1) % log_every
        results.append(trainer.train(min(count, total - done), tick))
        trainer.synchronize()
        edges.append((min(done + count, total), clock()))
    return edges, results
