"""The processes of a round are started, observed and recorded, whatever happens to one of them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from trainmark.backends.layout import Layout, Rendezvous
from trainmark.data.locate import Located
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side, Spreading
from trainmark.execute.parent.probe import THIS, Interpreter, Seen, probe
from trainmark.execute.parent.scheduler import RunObserver, RunStopped, execute
from trainmark.execute.parent.task import Task, in_rounds
from trainmark.execute.parent.time_limit import TimeLimit
from trainmark.execute.protocol.answers import Answer, EpochEnded
from trainmark.measure.sampler import Sampler
from trainmark.record.record import Record, Samples
from trainmark.record.store import Store
from trainmark.workload import catalog

STEPS = 20


@pytest.fixture
def gone(tmp_path: Path) -> Interpreter:
    """An interpreter that was removed."""
    return Interpreter("gone", tmp_path / "no" / "python")


@pytest.fixture(scope="module")
def numpy() -> Seen:
    return probe(THIS, "numpy")


def a_round(digits: Located, *interpreters: Interpreter) -> list[Task[Run]]:
    scheduled = ScheduledWorkload(
        catalog.find("mnist-mlp128").with_schedule(steps=STEPS), digits, 1
    )
    sides = [Side("numpy", "idiomatic", "cpu", each) for each in interpreters]
    return in_rounds([(scheduled, sides)], Settings())


def executed(
    tasks: Sequence[Task[Run]], store: Store, numpy: Seen, observer: RunObserver, **options: Any
) -> list[Record]:
    seen = {("numpy", task.first.side.interpreter.label): numpy for task in tasks}
    return execute(tasks, seen, store, observer, **options)


def outcomes(records: Sequence[Record]) -> dict[str | None, str]:
    """Return the status of each record by the label of its interpreter."""
    return {record.python.label: record.outcome.status for record in records}


class Events(RunObserver):
    """Keeps the events of the runs, without samples."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def task_started(self, task: Task[Any]) -> None:
        self.seen.append("task started")

    def run_started(self, task: Task[Any], run: object, replayed: bool) -> None:
        self.seen.append("run started")

    def answered(self, task: Task[Any], answer: Answer) -> None:
        if isinstance(answer, EpochEnded):
            self.seen.append("epoch ended")

    def recorded(self, task: Task[Any], record: Record) -> None:
        self.seen.append(f"recorded {record.outcome.status}")

    def task_ended(self, task: Task[Any]) -> None:
        self.seen.append("task ended")


class EndsAtEpoch(RunObserver):
    """Raises an error once a training reports an epoch."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def answered(self, task: Task[Any], answer: Answer) -> None:
        if isinstance(answer, EpochEnded):
            raise self._error


class InterruptedSampler(Sampler):
    """Ctrl-C arrives when the process has ended and its record is made."""

    interrupts = True

    def take(self, origin: float) -> Samples | None:
        if self.interrupts:
            self.interrupts = False
            raise KeyboardInterrupt
        return super().take(origin)


@pytest.mark.parametrize(
    ("nodes", "threads", "best", "used"),
    [(1, 1, None, 2), (1, None, 3, 6), (1, 1, 3, 2), (2, 3, None, 3), (1, None, None, None)],
    ids=["given", "the best", "given before the best", "two machines", "unlimited"],
)
def test_ranks_use_the_threads_of_all_ranks_on_this_machine(
    drawn: Located, nodes: int, threads: int | None, best: int | None, used: int | None
) -> None:
    (task,) = a_round(drawn, THIS)
    spread = Spreading(Layout(data=2), rendezvous=Rendezvous(nodes=nodes))
    run = dataclasses.replace(task.first, spread=spread, settings=Settings(threads=threads))
    assert run.threads_here(best) == used


def test_a_run_is_observed_from_its_start_to_its_end(
    tmp_path: Path, drawn: Located, numpy: Seen
) -> None:
    events = Events()
    (record,) = executed(a_round(drawn, THIS), Store(tmp_path / "out"), numpy, events)
    assert events.seen == [
        "task started",
        "run started",
        "epoch ended",
        "recorded ok",
        "task ended",
    ]
    assert sum(epoch.steps or 0 for epoch in record.epochs) == STEPS


def test_an_observer_can_stop_a_run_and_keep_its_results(
    tmp_path: Path, drawn: Located, numpy: Seen
) -> None:
    stops = EndsAtEpoch(RunStopped("enough"))
    (record,) = executed(a_round(drawn, THIS), Store(tmp_path / "out"), numpy, stops)
    assert (record.outcome.status, record.outcome.reason) == ("ok", "enough")
    assert record.epochs


def test_ctrl_c_leaves_a_record_of_each_side_that_is_alive(
    tmp_path: Path, drawn: Located, numpy: Seen
) -> None:
    other = dataclasses.replace(THIS, label="other")
    store = Store(tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        executed(a_round(drawn, THIS, other), store, numpy, EndsAtEpoch(KeyboardInterrupt()))
    assert outcomes(store.read_all()) == {"default": "interrupted", "other": "interrupted"}


@pytest.mark.parametrize("has_started", [True, False], ids=["a training", "a failed start"])
def test_ctrl_c_after_a_process_has_ended_leaves_a_record(
    tmp_path: Path, drawn: Located, numpy: Seen, gone: Interpreter, has_started: bool
) -> None:
    store = Store(tmp_path / "out")
    tasks = a_round(drawn, THIS if has_started else gone)
    events = Events()
    with pytest.raises(KeyboardInterrupt):
        executed(tasks, store, numpy, events, sampler=InterruptedSampler)
    assert [record.outcome.status for record in store.read_all()] == ["interrupted"]
    assert events.seen[-2:] == ["recorded interrupted", "task ended"]


def test_a_side_that_cannot_start_has_a_record_others_train(
    tmp_path: Path, drawn: Located, numpy: Seen, gone: Interpreter
) -> None:
    tasks = a_round(drawn, gone, THIS)
    records = executed(tasks, Store(tmp_path / "out"), numpy, RunObserver())
    assert outcomes(records) == {"gone": "failed", "default": "ok"}
    reasons = {record.python.label: record.outcome.reason for record in records}
    assert "can't be started" in (reasons["gone"] or "")


def test_a_side_that_hangs_is_ended_and_the_other_one_trains(
    tmp_path: Path, drawn: Located, numpy: Seen
) -> None:
    sleeper = tmp_path / "python"
    sleeper.write_text("#!/bin/sh\nexec sleep 3600\n")
    sleeper.chmod(0o755)
    tasks = a_round(drawn, THIS, Interpreter("hangs", sleeper))
    limit = TimeLimit(patience=0.5)
    records = executed(tasks, Store(tmp_path / "out"), numpy, RunObserver(), limit=limit)
    assert outcomes(records) == {"default": "ok", "hangs": "timeout"}


def test_nothing_starts_after_the_limit(tmp_path: Path, drawn: Located, numpy: Seen) -> None:
    limit = TimeLimit(0.0)
    store = Store(tmp_path / "out")
    assert executed(a_round(drawn, THIS), store, numpy, RunObserver(), limit=limit) == []


def test_what_runs_at_the_limit_is_ended_and_recorded(
    tmp_path: Path, drawn: Located, numpy: Seen
) -> None:
    sleeper = tmp_path / "python"
    sleeper.write_text("#!/bin/sh\nexec sleep 3600\n")
    sleeper.chmod(0o755)
    began = time.perf_counter()
    limit = TimeLimit(0.5, began, "the limit")
    tasks = a_round(drawn, Interpreter("hangs", sleeper))
    (record,) = executed(tasks, Store(tmp_path / "out"), numpy, RunObserver(), limit=limit)
    assert (record.outcome.status, record.outcome.reason) == ("timeout", "the limit ended it")
