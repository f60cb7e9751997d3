"""The one place where the clock of a training is read: at synchronised edges, with the backend's code alone between."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainmark.backends.base import EpochPlan, Trainer
from trainmark.execute.worker.slices import Slices

Clock = Callable[[], float]


@dataclass
class TimedEpoch:
    """One epoch between synchronised edges.

    Args:
        edges: as (steps done, seconds of training so far), the first at 0 steps.
        windows: when it trained, as (start, seconds); several where it paused.
        results: what each ``train`` returned.
    """

    edges: list[tuple[int, float]] = field(default_factory=lambda: [(0, 0.0)])
    windows: list[tuple[float, float]] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)

    @property
    def start(self) -> float:
        """Reading of the clock before its first step."""
        return self.windows[0][0]

    @property
    def done(self) -> int:
        """Steps up to the last edge."""
        return self.edges[-1][0]

    @property
    def seconds(self) -> float:
        """Without pauses."""
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

    With ``log_every`` there is an edge behind every step whose number, from ``first_step`` on, it divides; and there is
    one wherever ``pacing`` wants it, at which the training may pause.
    """
    pacing, total, epoch = pacing or Slices(), len(plan.sizes), TimedEpoch()
    pacing.wait_for_turn()
    trainer.synchronize()
    opened = before = clock()
    trainer.begin_epoch(plan)

    def next_edge() -> int:
        # As the published logs do: the first line is of step 0, then one every so many.
        logged = total if log_every is None else log_every - (first_step + epoch.done - 1) % log_every
        return min(total, epoch.done + min(logged, pacing.most_steps() or total))

    def last_loss() -> float | None:
        """Of the last step; None inside one ``train``, whose results are not there yet."""
        loss = trainer.read(epoch.results[-1]).losses[-1] if epoch.results else math.nan
        return float(loss) if math.isfinite(loss) else None

    def reach(edge: int) -> None:
        nonlocal opened, before
        trainer.synchronize()
        now = clock()
        steps, seconds = edge - epoch.done, now - before
        epoch.edges.append((edge, epoch.seconds + seconds))
        pacing.trained(steps, sum(plan.sizes[edge - steps : edge]), seconds, now)
        if edge == total:
            epoch.windows.append((opened, now - opened))
            return
        paused = pacing.wait_for_turn(last_loss)
        before = clock()
        if paused:
            epoch.windows.append((opened, now - opened))
            opened = before

    if getattr(trainer, "ticks_between_steps", False):
        ticked, edge = 0, next_edge()

        def count() -> None:
            nonlocal ticked, edge
            tick()
            ticked += 1
            if ticked == edge < total:
                reach(edge)
                edge = next_edge()

        epoch.results.append(trainer.train(total, count))
        reach(total)
        return epoch
    while epoch.done < total:
        edge = next_edge()
        epoch.results.append(trainer.train(edge - epoch.done, tick))
        reach(edge)
    return epoch
