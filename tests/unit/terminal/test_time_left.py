"""The time left never stays at a second for minutes."""

from __future__ import annotations

import pytest

from trainmark.terminal.time_left import Throughput, TimeLeft


class ATask:
    """A task and its only run."""

    blocks = None

    def __init__(self, title: str = "a") -> None:
        self.title = title

    @property
    def first(self) -> ATask:
        return self


class Tasks:
    """Tasks, one after the other; the first runs."""

    def __init__(self, *kinds: str) -> None:
        self.left = TimeLeft([ATask(kind) for kind in kinds])  # type: ignore[misc]
        self._kinds = list(kinds)
        self._begin()

    def _begin(self) -> None:
        self._time = self.left.started(self._kinds.pop(0))

    def task_done(self, seconds: float) -> None:
        self._time.elapsed = seconds
        self.left.done(self._time)
        self._begin()

    def estimate(self, elapsed: float, share: float, trained: float) -> float | None:
        self._time.elapsed = elapsed
        self._time.share = share
        self._time.trained = trained
        return self.left.estimate()


def left_of(*kinds: str) -> Tasks:
    return Tasks(*kinds)


def test_nothing_is_known_at_the_beginning() -> None:
    assert left_of("a", "a").estimate(5.0, 0.1, 3.0) is None


def test_the_first_run_is_estimated_without_its_start_up() -> None:
    # 10 s to begin, then a quarter in 5 s: 15 s more, and 30 s for the next
    assert left_of("a", "a").estimate(15.0, 0.25, 5.0) == pytest.approx(15 + 30)


def test_the_next_run_is_estimated_by_the_first() -> None:
    left = left_of("a", "a")
    left.task_done(20.0)
    assert left.estimate(5.0, 0.0, 0.0) == pytest.approx(15.0)


def test_a_slower_run_is_estimated_by_its_own_pace() -> None:
    left = left_of("a", "a")
    left.task_done(20.0)
    assert left.estimate(25.0, 0.5, 20.0) == pytest.approx(20.0)
    assert left.estimate(19.0, 0.5, 18.0) == pytest.approx(18.0)


def test_a_last_run_longer_than_the_others_has_no_estimate() -> None:
    left = left_of("a", "a")
    left.task_done(20.0)
    assert left.estimate(25.0, 0.0, 0.0) is None  # a command tells no steps
    # the steps are done, what comes after them takes its time
    assert left.estimate(25.0, 1.0, 20.0) is None


def test_a_run_that_is_still_to_come_counts() -> None:
    left = left_of("a", "a", "b")
    left.task_done(20.0)
    assert left.estimate(25.0, 0.0, 0.0) == pytest.approx(25.0)


def test_the_time_left_is_that_of_both_interleaved_sides() -> None:
    left = TimeLeft([ATask("a"), ATask("b")])  # type: ignore[list-item]
    for kind, seconds in (("a", 5.0), ("b", 10.0)):
        task = left.started(kind)
        task.elapsed = task.trained = seconds
        assert left.estimate() is None
        task.share = 0.5
    assert left.estimate() == pytest.approx(15.0)


def test_queued_steps_do_not_count_as_done(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((0.0, 1.0, 2.0, 10.0))
    monkeypatch.setattr("trainmark.terminal.time_left.time.monotonic", lambda: next(clock))
    throughput = Throughput(samples_a_step=2.0)
    # a program of 100 steps has been started at once
    rates = [throughput.rate(steps) for steps in (0, 100, 100, 100)]
    assert rates == [None, 200.0, 100.0, 20.0]
