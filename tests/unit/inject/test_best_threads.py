"""The search for the best number of CPU threads in the user's process, and the cases without a
search."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.inject.test_observer import Optimiser, said, step
from trainmark.execute.parent.process import THREAD_VARIABLES
from trainmark.execute.worker import threads as of_workloads
from trainmark.inject import best_threads
from trainmark.inject.best_threads import MOST_SECONDS, Search, Settable
from trainmark.inject.observer import Observer
from trainmark.inject.processes import STEPS

DEFAULT = 1
MOST_STEPS_TAKEN = 1_000_000
"""Number of steps after which a test gives up; the steps of a test take microseconds."""


class Threads(Settable):
    """Remembers which numbers of threads were set."""

    def __init__(self, default: int = DEFAULT) -> None:
        self.number = default
        self.tried: list[int] = []

    def get(self) -> int:
        return self.number

    def set(self, number: int) -> None:
        self.number = number
        self.tried.append(number)


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process may use four cores, and no variable fixes the number of threads."""
    monkeypatch.setattr(best_threads, "usable_cores", lambda: 4)
    for name in best_threads.VARIABLES:
        monkeypatch.delenv(name, raising=False)


def searched(
    threads: Threads, seconds: Callable[[int], float], most_steps: int | None = None
) -> Search:
    """Return a search that has ended, in which a step takes ``seconds`` with a number of
    threads."""
    search = Search(threads, [1, 2, 4, 8], most_steps)
    while not search.over:
        search.stepped(seconds(threads.number))
    return search


def test_the_fastest_number_is_found_and_set() -> None:
    threads = Threads(default=4)
    search = searched(threads, {1: 0.03, 2: 0.01, 4: 0.02}.__getitem__)
    assert search.result is not None
    assert (search.result["chosen"], search.result["default"], threads.number) == (2, 4, 2)
    assert search.result["step_seconds"] == pytest.approx({"1": 0.03, "2": 0.01, "4": 0.02})


def test_the_default_comes_first_and_the_second_pass_is_reversed() -> None:
    threads = Threads(default=2)
    searched(threads, lambda _: 0.01)
    assert threads.tried[:-1] == [2, 4, 1, 1, 4, 2], "without numbers above the cores"


def test_a_drift_of_the_machine_cancels_out() -> None:
    threads = Threads(default=4)
    search = Search(threads, [1, 2, 4])
    while not search.over:
        search.stepped(0.06 + 0.001 * search.steps)  # steps get slower and slower
    assert search.result is not None
    found = search.result["step_seconds"].values()
    assert max(found) == pytest.approx(min(found))


def test_nothing_is_tried_if_steps_are_long() -> None:
    threads = Threads()
    search = searched(threads, lambda _: 0.6)
    assert (search.result, search.steps, set(threads.tried)) == (None, 1, {DEFAULT})


def test_a_search_that_takes_too_long_keeps_the_default() -> None:
    threads = Threads(default=4)
    search = searched(threads, {1: 1.6, 2: 0.8, 4: 0.4}.__getitem__)
    assert (search.result, threads.number) == (None, 4)
    assert search.steps * 0.4 < MOST_SECONDS


def test_one_pass_suffices_if_two_take_too_long() -> None:
    search = searched(Threads(default=4), {1: 0.4, 2: 0.3, 4: 0.35}.__getitem__)
    assert search.result is not None
    assert search.result["chosen"] == 2


def test_a_search_takes_no_more_steps_than_it_may() -> None:
    threads = Threads(default=4)
    search = searched(threads, lambda _: 0.001, most_steps=50)
    assert (search.result, search.steps, threads.number) == (None, 51, 4)


def test_a_number_that_the_script_sets_meanwhile_stays() -> None:
    threads = Threads(default=4)
    search = Search(threads, [1, 2, 4])
    search.stepped(0.01)
    threads.number = 3
    threads.fixed = "the script sets it"
    search.stepped(0.01)
    assert (search.over, search.result, threads.number) == (True, None, 3)


def test_the_limits_are_those_of_workloads() -> None:
    for name in ("SLICE_SECONDS", "FEWEST_STEPS", "MOST_SECONDS", "LONGEST_STEP_SECONDS"):
        assert getattr(best_threads, name) == getattr(of_workloads, name)


def test_the_variables_include_those_that_trainmark_sets() -> None:
    of_make = "NPROC"  # PyTorch does not read it
    assert set(THREAD_VARIABLES) - {of_make} <= set(best_threads.VARIABLES)


# In an observer that takes turns


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the file of the reports of a training that gets two turns, and is asked to try numbers
    of threads."""
    path = tmp_path / "pipe"
    path.touch()
    turns = tmp_path / "turns"
    turns.write_text("0.001 0\ninf 0\n")
    (tmp_path / best_threads.FILE).write_text("1 2")
    monkeypatch.setenv("TRAINMARK_HOOK", str(path))
    monkeypatch.setenv("TRAINMARK_TURNS", str(turns))
    monkeypatch.delenv(STEPS, raising=False)
    monkeypatch.delitem(sys.modules, "trainmark.hook", raising=False)
    yield path
    sys.modules.pop("trainmark.hook", None)


def observer_of(pipe: Path, threads: Threads | None, device: str = "cpu") -> Observer:
    """Return an observer of a framework with these threads, whose weights are on the device."""
    observer = Observer(str(pipe.parent))
    observer.describe["fake"] = lambda: {"device": device}
    if threads is not None:
        observer.threads["fake"] = threads
    return observer


def train_until_a_slice(observer: Observer, pipe: Path) -> None:
    """Train until the first turn is over."""
    leader = Optimiser()
    for number in range(MOST_STEPS_TAKEN):
        step(observer, leader)
        if number % 100 == 0 and said(pipe, "slice"):
            return
    raise AssertionError("no slice")


def test_the_search_comes_before_the_first_slice(pipe: Path) -> None:
    threads = Threads()
    observer = observer_of(pipe, threads)
    train_until_a_slice(observer, pipe)
    (found,) = said(pipe, "threads")
    first = said(pipe, "slice")[0]
    assert found["default"] == DEFAULT
    assert list(found["step_seconds"]) == ["1", "2"]
    assert threads.number == found["chosen"]
    assert first["start"] >= found["t"]


def test_steps_of_the_search_are_not_timed(pipe: Path) -> None:
    observer = observer_of(pipe, Threads())
    leader = Optimiser()
    while not said(pipe, "resume"):
        step(observer, leader)
    for _ in range(20):
        step(observer, leader)
    assert observer.steps > 20
    assert observer.figures()["seconds"] == 0


def test_a_known_number_is_only_set(pipe: Path) -> None:
    (pipe.parent / best_threads.FILE).write_text("3")
    threads = Threads()
    train_until_a_slice(observer_of(pipe, threads), pipe)
    assert threads.tried == [3]
    assert not said(pipe, "threads")


def test_without_a_request_nothing_is_tried(pipe: Path) -> None:
    (pipe.parent / best_threads.FILE).unlink()
    threads = Threads()
    train_until_a_slice(observer_of(pipe, threads), pipe)
    assert not threads.tried


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "WORLD_SIZE"])
def test_a_variable_keeps_threads_as_they_are(
    name: str, pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "2")
    threads = Threads()
    train_until_a_slice(observer_of(pipe, threads), pipe)
    assert not threads.tried


def test_a_number_that_the_script_has_set_stays(pipe: Path) -> None:
    threads = Threads()
    threads.fixed = "the script sets it"
    train_until_a_slice(observer_of(pipe, threads), pipe)
    assert not threads.tried


def test_weights_on_an_accelerator_need_no_search(pipe: Path) -> None:
    threads = Threads()
    train_until_a_slice(observer_of(pipe, threads, device="cuda:0"), pipe)
    assert not threads.tried


def test_a_framework_without_settable_threads_trains_on(pipe: Path) -> None:
    observer = observer_of(pipe, None)
    train_until_a_slice(observer, pipe)
    assert not said(pipe, "threads")


def test_a_short_training_keeps_its_steps_for_slices(
    pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STEPS, "40")
    threads = Threads()
    observer = observer_of(pipe, threads)
    leader = Optimiser()
    for _ in range(39):
        step(observer, leader)
    assert threads.tried[-1] == DEFAULT
    assert not said(pipe, "threads")
    assert observer.figures()["seconds"] > 0, "the other steps are timed"
