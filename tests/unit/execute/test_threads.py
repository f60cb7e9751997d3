"""The number of CPU threads with which a step is fastest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from trainmark.backends.base import EpochPlan
from trainmark.execute.worker.threads import try_threads


class Training:
    """Steps whose duration depends on the number of threads; the clock is its own.

    Args:
        step_seconds: by number of threads.
        threads: number of threads at the start.
    """

    def __init__(self, step_seconds: Mapping[int, float], threads: int) -> None:
        self._step_seconds = step_seconds
        self._threads = threads
        self.now = 0.0
        self.used: list[int] = []

    def threads(self) -> int:
        return self._threads

    def set_threads(self, number: int) -> None:
        self._threads = number
        self.used.append(number)

    def begin_epoch(self, plan: EpochPlan) -> None: ...

    def train(self, steps: int, tick: Callable[[], None]) -> None:
        self.now += steps * self._step_seconds[self._threads]
        tick()

    def synchronize(self) -> None: ...

    def find(self, *candidates: int) -> Any:
        plans = [EpochPlan((64,) * 10, None)]
        trainer: Any = self
        return try_threads(trainer, self, lambda: plans, candidates, lambda: None, lambda: self.now)


def test_the_fastest_number_of_threads_stays() -> None:
    training = Training({1: 0.04, 2: 0.01, 4: 0.02, 16: 0.1}, threads=16)
    found = training.find(1, 2, 4, 16)
    assert (found.chosen, found.default, training.threads()) == (2, 16, 2)
    assert dict(found.tried) == pytest.approx({1: 0.04, 2: 0.01, 4: 0.02, 16: 0.1})


def test_both_passes_try_every_number_in_opposite_order() -> None:
    training = Training({1: 0.02, 2: 0.01, 4: 0.03}, threads=4)
    training.find(1, 2, 4)
    assert training.used == [4, 2, 1, 1, 2, 4, 2]


def test_with_long_steps_nothing_is_tried() -> None:
    training = Training({1: 8.0, 2: 4.0, 4: 2.0}, threads=4)
    assert training.find(1, 2, 4) is None
    assert training.now == 2.0, "one step shows it"
    assert training.threads() == 4


def test_without_time_for_every_number_the_default_stays() -> None:
    training = Training({1: 4.0, 2: 2.0, 4: 0.4}, threads=4)
    assert training.find(1, 2, 4) is None
    assert training.threads() == 4
