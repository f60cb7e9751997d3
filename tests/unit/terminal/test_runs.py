"""The display of a training while it goes on."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from trainmark.data.locate import Located
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side
from trainmark.execute.parent.probe import THIS
from trainmark.execute.parent.task import in_rounds
from trainmark.execute.protocol.answers import Compiled, EpochEnded, Ready, SliceTimed, Waiting
from trainmark.terminal.runs import FollowedTask, RunProgress
from trainmark.terminal.time_left import TaskTime
from trainmark.workload import catalog


def a_run() -> Run:
    dataset = Located("mnist", Path("/nowhere"), "cache", "5f" * 32, True, 60_000, 10_000)
    scheduled = ScheduledWorkload(catalog.find("mnist-mlp512"), dataset, 1)
    (task,) = in_rounds([(scheduled, [Side("numpy", "idiomatic", "cpu", THIS)])], Settings())
    return task.first


def followed() -> FollowedTask:
    shown = FollowedTask(1, TaskTime(""))
    shown.run_started(a_run(), replayed=False)
    shown.on_answer(Ready(steps=938, epochs=2))
    return shown


def test_the_rate_is_known_before_the_first_epoch_has_ended() -> None:
    shown = followed()
    shown.count(10, 0.1)
    shown.count(20, 0.1)
    assert shown.live.endswith("samples/s")


def test_the_time_of_a_compilation_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((0.0, 30.0, 31.0))
    monkeypatch.setattr("trainmark.terminal.time_left.time.monotonic", lambda: next(clock))
    shown = followed()
    shown.count(0, 0.1)
    shown.on_answer(Compiled(30.0))
    for steps in (0, 10):
        shown.count(steps, 0.1)
    assert shown.live == "1,280 samples/s"


def test_after_an_epoch_its_rate_replaces_that_of_counted_steps() -> None:
    shown = followed()
    shown.on_answer(EpochEnded(0, 0.0, 2.0, 20, 2560))
    shown.count(20, 30.0)  # an evaluation lies in between
    shown.count(40, 0.1)  # queued
    assert shown.live == "1,280 samples/s"


def test_the_rate_of_a_side_excludes_turns_of_the_others() -> None:
    shown = followed()
    shown.on_answer(SliceTimed(start=1.0, steps=30, timed_steps=25, seconds=0.1, examples=3200))
    shown.count(10, 0.1)
    shown.count(20, 10.0)
    assert shown.live == "32.0k samples/s"


def test_the_loss_is_that_of_the_latest_slice_or_epoch() -> None:
    shown = followed()
    shown.on_answer(Waiting(loss=2.3))
    assert shown.live == "loss 2.300"
    shown.on_answer(Compiled(None))
    shown.on_answer(EpochEnded(0, 0.0, 1.0, 469, 60_000, losses=[2.0, 0.5]))
    assert "loss 0.5000" in shown.live
    shown.on_answer(Waiting())
    assert "loss 0.5000" in shown.live


def test_each_live_side_has_a_line() -> None:
    dataset = Located("mnist", Path("/nowhere"), "cache", "5f" * 32, True, 60_000, 10_000)
    scheduled = ScheduledWorkload(catalog.find("mnist-mlp512"), dataset, 1)
    tasks = in_rounds(
        [(scheduled, [Side("numpy", style, "cpu", THIS) for style in ("idiomatic", "fast")])],
        Settings(),
    )
    screen = Console(file=io.StringIO(), force_terminal=True, width=160)
    with RunProgress(screen, tasks, Path("out")) as shown:
        for task in tasks:
            shown.task_started(task)
            shown.run_started(task, task.first, False)
            shown.answered(task, Ready(steps=938, epochs=2))
            shown.counted(task, 469)
        lines = [task.description for task in shown._progress.tasks]
        assert lines == [
            "mnist-mlp512 numpy idiomatic cpu, round 1",
            "mnist-mlp512 numpy fast cpu, round 1",
        ]
        shown.task_ended(tasks[0])
        assert [task.description for task in shown._progress.tasks] == lines[1:]
