"""Times a trainer for a few seconds, with the timing code of trainmark's worker."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from trainmark.backends.base import EpochPlan, Trainer
from trainmark.execute.worker.slices import Enough, Slices
from trainmark.execute.worker.timing import timed_epoch

STRETCHES = 10
"""Approximate number of timed stretches; their spread shows how steady the step is."""
FEWEST_WARM_UP_STEPS = 3
WARM_UP_SHARE = 0.2
"""Least duration of the untimed warm-up, as a share of the timed seconds, so that clocks and caches
are warm."""


@dataclass(frozen=True)
class Timing:
    """How long to measure one configuration.

    Args:
        seconds: duration of the timed steps.
    """

    seconds: float


class Stretches(Slices):
    """Ends a training after a warm-up and :data:`STRETCHES` timed stretches.

    Args:
        seconds: duration of all timed stretches together.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.timed: list[tuple[int, int, float]] = []  # steps, examples, seconds
        self.loss: float | None = None
        self._seconds_wanted = seconds
        self._warm_steps = 0
        self.warm_seconds = 0.0
        self._stretch_steps = 0  # steps of a timed stretch; 0 during the warm-up
        self._next = 1
        self._done = False

    def wait_for_turn(self, loss: Callable[[], float | None] = lambda: None) -> bool:
        """End the training when it has been timed long enough; it never pauses."""
        if self.timed:
            found = loss()
            self.loss = self.loss if found is None else found
        if self._done:
            raise Enough
        return False

    def most_steps(self) -> int:
        """Return the number of steps up to the next edge."""
        return self._stretch_steps or self._next

    def trained(self, steps: int, examples: int, seconds: float, now: float) -> None:  # noqa: ARG002
        """Count the steps of a stretch."""
        if self._stretch_steps:
            self.timed.append((steps, examples, seconds))
            total = sum(each[2] for each in self.timed)
            self._done = total >= self._seconds_wanted and len(self.timed) >= FEWEST_WARM_UP_STEPS
            return
        self._warm_steps += steps
        self.warm_seconds += seconds
        self._next = 2 * steps
        if (
            self._warm_steps >= FEWEST_WARM_UP_STEPS
            and self.warm_seconds >= WARM_UP_SHARE * self._seconds_wanted
        ):
            # The last part of the warm-up is the best estimate of a steady step.
            self._stretch_steps = max(
                1, round(self._seconds_wanted / STRETCHES / (seconds / steps))
            )


def measure(
    trainer: Trainer, plans: Callable[[], Iterable[EpochPlan]], timing: Timing, began: float
) -> dict[str, Any]:
    """Prepare a trainer and time it.

    Args:
        trainer: a trainer that has its weights.
        plans: returns the epochs of a training, again and again.
        timing: how long to time it.
        began: reading of the performance counter before the trainer was made.

    Returns:
        The figures of its row; ``prepare_seconds`` includes compilation.
    """
    first = next(iter(plans()))
    trainer.compile(first)
    trainer.synchronize()
    pacing = Stretches(timing.seconds)
    prepared = time.perf_counter() - began
    try:
        while True:
            for plan in plans():
                timed_epoch(trainer, plan, _no_tick, time.perf_counter, pacing=pacing)
    except Enough:
        pass
    rates = [examples / seconds for _, examples, seconds in pacing.timed]
    steps = sum(each[0] for each in pacing.timed)
    return {
        "n": len(rates),
        "steps": steps,
        "samples_per_second": statistics.median(rates),
        "lowest": min(rates),
        "highest": max(rates),
        "step_seconds": sum(each[2] for each in pacing.timed) / steps,
        "prepare_seconds": prepared,
        "warm_up_seconds": pacing.warm_seconds,
        "loss": pacing.loss,
        "device_peak_bytes": trainer.device_peak_bytes(),
    }


def _no_tick() -> None:
    """Do nothing: progress is not shown."""
