"""A training that takes turns, on the measured side."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trainmark.backends.base import EpochPlan, Steps
from trainmark.execute.protocol.answers import SliceTimed, Waiting
from trainmark.execute.protocol.wire import to_message
from trainmark.execute.protocol.worker_commands import Stop, TakeTurn
from trainmark.execute.worker.slices import FEWEST_STEPS, Enough, Slices
from trainmark.execute.worker.timing import TimedEpoch, timed_epoch

STEP = 0.125
"""Seconds of a step; binary fractions hold them exactly."""


class Training:
    """A trainer on its own clock: a step takes :data:`STEP`, an epoch's start and a pause a
    while."""

    ticks_between_steps = False

    def __init__(self, start: float = 0.0) -> None:
        self.now = 100.0
        self._start = start
        self.trained: list[int] = []

    def clock(self) -> float:
        return self.now

    def synchronize(self) -> None:
        pass

    def begin_epoch(self, plan: EpochPlan) -> None:
        self.now += self._start

    def train(self, steps: int, tick: Any) -> int:
        self.trained.append(steps)
        for _ in range(steps):
            self.now += STEP
            tick()
        return steps

    def read(self, steps: int) -> Steps:
        """The loss is the number of steps that were trained so far."""
        return Steps(np.full(steps, float(sum(self.trained))), None, np.zeros(steps, np.int64))


class TicksBetweenSteps(Training):
    ticks_between_steps = True


class Parent:
    """Gives turns at once; between two of them others compute for ten seconds."""

    def __init__(
        self, training: Training, seconds: list[float | None], untimed: float = 0.0
    ) -> None:
        self.training = training
        self.said = []
        self._untimed = untimed
        self.turns: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.until_steady = False
        self._seconds = iter(seconds)

    def on_answer(self, answer: object) -> None:
        self.said.append(answer)
        if isinstance(answer, Waiting):
            self.training.now += 10.0
            seconds = next(self._seconds, "stop")
            turn = (
                Stop() if seconds == "stop" else TakeTurn(seconds, self._untimed, self.until_steady)
            )  # type: ignore[arg-type]
            self.turns.put(to_message(turn))

    @property
    def slices(self) -> list[SliceTimed]:
        return [answer for answer in self.said if isinstance(answer, SliceTimed)]


def an_epoch(training: Training, pacing: Slices, steps: int) -> TimedEpoch:
    plan = EpochPlan((10,) * steps, None)
    return timed_epoch(training, plan, lambda: None, training.clock, pacing=pacing)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Training, TicksBetweenSteps])
def test_a_slice_has_untimed_steps_and_then_half_a_second(
    kind: type[Training],
) -> None:
    training = kind()
    parent = Parent(training, [0.5, 0.5, 0.5, None])
    epoch = an_epoch(training, Slices(parent.turns, parent.on_answer, origin=100.0), 100)
    assert [
        (each.steps, each.timed_steps, each.seconds, each.examples) for each in parent.slices
    ] == [(5, 4, 0.5, 40)] * 2
    assert epoch.done == 100
    assert epoch.seconds == pytest.approx(100 * STEP), "pauses are not in it"
    assert sum(seconds for _, seconds in epoch.windows) == pytest.approx(epoch.seconds)
    assert len(epoch.windows) == 4
    for (start, seconds), (following, _) in zip(epoch.windows, epoch.windows[1:], strict=False):
        assert following - (start + seconds) == pytest.approx(10.0)
    assert sum(training.trained) == 100


@pytest.mark.parametrize("kind", [Training, TicksBetweenSteps])
def test_a_training_ends_at_a_step_when_its_time_is_over(kind: type[Training]) -> None:
    training = kind()
    epoch = an_epoch(training, Slices(ends_at=110.0), 1000)
    assert epoch.is_cut
    assert 110.0 <= training.now < 111.0
    assert epoch.done * STEP == pytest.approx(epoch.seconds)
    assert bool(epoch.results) == (kind is Training), "the other one returns whole epochs only"


def test_a_training_far_from_its_limit_is_not_interrupted() -> None:
    training = Training()
    pacing = Slices(ends_at=1_000_000.0)
    assert not an_epoch(training, pacing, 100).is_cut
    assert not an_epoch(training, pacing, 100).is_cut
    assert training.trained == [1, 99, 100]


def test_a_trainer_that_ticks_between_steps_trains_a_whole_epoch() -> None:
    training = TicksBetweenSteps()
    parent = Parent(training, [0.5, 0.5, None])
    an_epoch(training, Slices(parent.turns, parent.on_answer, origin=0.0), 50)
    assert training.trained == [50]


def test_the_start_of_a_slice_is_on_the_clock_of_the_process() -> None:
    training = Training()
    parent = Parent(training, [0.5, 0.5, None])
    epoch = an_epoch(training, Slices(parent.turns, parent.on_answer, origin=100.0), 50)
    assert parent.slices[0].start == pytest.approx(epoch.windows[1][0] - 100.0)


def test_the_start_of_an_epoch_counts_in_its_slice() -> None:
    training = Training(start=1.0)
    parent = Parent(training, [0.5, 4.0, None])
    pacing = Slices(parent.turns, parent.on_answer, origin=0.0)
    for _ in range(4):
        an_epoch(training, pacing, 10)
    slice_ = parent.slices[0]
    assert slice_.seconds > slice_.timed_steps * STEP
    assert (slice_.seconds - slice_.timed_steps * STEP) % 1.0 == pytest.approx(0.0)


def test_the_untimed_part_continues_in_the_next_epoch() -> None:
    training = Training()
    parent = Parent(training, [0.5, 0.5, None], untimed=10 * STEP)  # that is more than an epoch
    pacing = Slices(parent.turns, parent.on_answer, origin=0.0)
    for _ in range(8):
        an_epoch(training, pacing, 6)
    (slice_,) = parent.slices[:1]
    assert slice_.steps - slice_.timed_steps == 10
    assert slice_.seconds == pytest.approx(slice_.timed_steps * STEP)


class Rising(Training):
    """A device whose clock rises after a pause, so that the first steps take longer."""

    def train(self, steps: int, tick: Any) -> int:
        for _ in range(steps):
            since = self.now - self.resumed
            self.now += STEP * max(0.0, 1.0 - since) * self.cold
        return super().train(steps, tick)

    cold = 1.0
    resumed = 0.0


@pytest.mark.parametrize(("cold", "untimed"), [(0.0, 4), (1.0, 8)], ids=["steady", "rising"])
def test_a_slice_waits_until_the_time_of_a_step_is_steady(cold: float, untimed: int) -> None:
    training = Rising()
    training.cold = cold
    parent = Parent(training, [0.5, 0.5, None], untimed=4 * STEP)
    parent.until_steady = True
    on_answer = parent.on_answer

    def resume(answer: object) -> None:
        on_answer(answer)
        training.resumed = training.now

    an_epoch(training, Slices(parent.turns, resume, origin=0.0), 60)
    slice_ = parent.slices[0]
    assert slice_.steps - slice_.timed_steps == untimed
    assert slice_.seconds == pytest.approx(slice_.timed_steps * STEP), (
        "the cold steps are not in it"
    )


def test_slow_steps_have_at_least_two_timed_ones() -> None:
    training = Training()
    parent = Parent(training, [0.01, 0.01, 0.01, None])
    an_epoch(training, Slices(parent.turns, parent.on_answer, origin=0.0), 40)
    assert {each.timed_steps for each in parent.slices} == {FEWEST_STEPS}


def test_a_last_slice_counts_if_at_least_half_of_it_was_timed() -> None:
    for steps, told in ((4 + 1 + 2, 1), (4 + 1 + 1, 0)):  # of the first turn, not timed, timed
        training = Training()
        parent = Parent(training, [0.5, 0.5])
        pacing = Slices(parent.turns, parent.on_answer, origin=0.0)
        an_epoch(training, pacing, steps)
        pacing.finish()
        assert len(parent.slices) == told


def test_ranks_take_as_many_steps_as_the_first_one() -> None:
    def train(start: float, agree: Callable[[Any], Any]) -> tuple[Training, TimedEpoch]:
        training = Training(start)  # so its clock differs

        def agreed(own: Any) -> Any:
            training.now += 1.0
            return agree(own)

        parent = Parent(training, [0.5, 0.5, 0.5, None])
        return training, an_epoch(
            training, Slices(parent.turns, parent.on_answer, 0.0, agreed), 100
        )

    said: list[Any] = []
    first, epoch = train(0.0, lambda own: said.append(own) or own)  # type: ignore[func-returns-value]
    received = iter(said)
    second, _ = train(3.0, lambda _: next(received))
    assert first.trained == second.trained
    assert epoch.seconds == pytest.approx(100 * STEP), "to agree is not training"


def test_it_stops_where_the_parent_has_enough() -> None:
    training = Training()
    parent = Parent(training, [0.5, 0.5])
    with pytest.raises(Enough):
        an_epoch(training, Slices(parent.turns, parent.on_answer, origin=0.0), 100)
    assert len(parent.slices) == 1
    assert sum(training.trained) < 100


def trained_again_and_again(restart: float, seconds: list[float | None]) -> tuple[Training, Parent]:
    """Train four steps over and over, with ``restart`` seconds between two trainings, until the
    parent has enough."""
    training = Training()
    parent = Parent(training, seconds)
    pacing = Slices(parent.turns, parent.on_answer, origin=0.0)
    with pytest.raises(Enough):
        while True:
            an_epoch(training, pacing, 4)
            training.now += restart
            pacing.restarted(restart)
    return training, parent


def test_quick_restarts_leave_a_slice_as_long_as_it_is() -> None:
    _, parent = trained_again_and_again(STEP / 8, [2.0, 2.0, 2.0])
    assert [each.seconds for each in parent.slices] == [2.0, 2.0]


def test_slow_restarts_end_a_slice_early_with_true_numbers() -> None:
    training, parent = trained_again_and_again(1.5, [2.0, 2.0, 2.0])
    assert len(parent.slices) == 2
    for each in parent.slices:
        assert FEWEST_STEPS <= each.timed_steps < 2.0 / STEP
        assert each.seconds == each.timed_steps * STEP, "restarts are not timed"
    pauses = 4 * 10.0
    assert training.now - 100.0 - pauses < 3 * (2.0 + 2.0 + 2 * 1.5), (
        "a slice, plus as long for restarts"
    )
