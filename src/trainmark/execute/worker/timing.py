"""The only place where the clock of a training is read.

It is read at synchronised edges, with only the backend's code between.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainmark.backends.base import EpochPlan, Trainer
from trainmark.execute.worker.slices import OutOfTime, Slices

Clock = Callable[[], float]


def _first_edge() -> list[tuple[int, float]]:
    return [(0, 0.0)]


@dataclass
class TimedEpoch:
    """One epoch between synchronised edges.

    Args:
        edges: (steps done, seconds of training so far), the first one at 0 steps.
        windows: times of training, as (start, seconds); several if it paused.
        results: return value of each ``train``.
        is_cut: whether the time limit ended it before its last step.
    """

    edges: list[tuple[int, float]] = field(default_factory=_first_edge)
    windows: list[tuple[float, float]] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    is_cut: bool = False

    @property
    def start(self) -> float:
        """Reading of the clock before its first step."""
        return self.windows[0][0]

    @property
    def done(self) -> int:
        """Number of steps up to the last edge."""
        return self.edges[-1][0]

    @property
    def seconds(self) -> float:
        """Duration without pauses."""
        return self.edges[-1][1]


def timed_epoch(
    trainer: Trainer,
    plan: EpochPlan,
    tick: Callable[[], None],
    clock: Clock,
    *,
    log_every: int | None = None,
    first_step: int = 0,
    pacing: Slices | None = None,
) -> TimedEpoch:
    """Train one epoch between synchronised readings of the clock.

    There is an edge after each step whose number, counted from ``first_step``, is a multiple of
    ``log_every``, and wherever ``pacing`` requests one. There the training may pause or, at its
    time limit, end.
    """
    pacing = pacing or Slices()
    total = len(plan.sizes)
    epoch = TimedEpoch()
    pacing.wait_for_turn()
    trainer.synchronize()
    opened = before = clock()
    trainer.begin_epoch(plan)

    def next_edge() -> int:
        # As in the published logs, the first line is for step 0.
        logged = (
            total if log_every is None else log_every - (first_step + epoch.done - 1) % log_every
        )
        return min(total, epoch.done + min(logged, pacing.most_steps() or total))

    def last_loss() -> float | None:
        """Return the loss of the last step.

        The result is None within a ``train``, whose results are not available yet.
        """
        loss = trainer.read(epoch.results[-1]).losses[-1] if epoch.results else math.nan
        return float(loss) if math.isfinite(loss) else None

    def reach(edge: int) -> None:
        nonlocal opened, before
        trainer.synchronize()
        now = clock()
        steps = edge - epoch.done
        seconds = now - before
        epoch.edges.append((edge, epoch.seconds + seconds))
        pacing.trained(steps, sum(plan.sizes[edge - steps : edge]), seconds, now)
        if edge == total:
            epoch.windows.append((opened, now - opened))
            return
        try:
            paused = pacing.wait_for_turn(last_loss)
        except OutOfTime:
            epoch.windows.append((opened, now - opened))
            raise
        before = clock()
        if paused:
            epoch.windows.append((opened, now - opened))
            opened = before

    if getattr(trainer, "ticks_between_steps", False):
        ticked = 0
        edge = next_edge()

        def count() -> None:
            nonlocal ticked, edge
            tick()
            ticked += 1
            if ticked == edge < total:
                reach(edge)
                edge = next_edge()

        try:
            epoch.results.append(trainer.train(total, count))
        except OutOfTime:  # such a trainer returns the results of whole epochs only
            epoch.is_cut = True
            return epoch
        reach(total)
        return epoch
    while epoch.done < total:
        edge = next_edge()
        epoch.results.append(trainer.train(edge - epoch.done, tick))
        try:
            reach(edge)
        except OutOfTime:
            epoch.is_cut = True
            break
    return epoch
