"""Without a terminal, lines are printed to the given stream, and never more often than promised."""

from __future__ import annotations

import io
import signal
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from trainmark.execute.protocol.answers import Compiled, Ready
from trainmark.terminal.plain_lines import EVERY_SECONDS, FIRST_SECONDS, PlainLines
from trainmark.terminal.runs import RunProgress
from trainmark.terminal.work import WorkProgress


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made)
    return made


def a_log(*, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=200)


def said(screen: Console) -> list[str]:
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue().splitlines()


def test_a_line_comes_after_10_seconds_and_then_every_30(clock: Clock) -> None:
    screen = a_log()
    lines = PlainLines(screen, lambda: "step 3 of 9")
    at = []
    for _ in range(1000):  # ten looks a second, for 100 s
        clock.now += 0.1
        before = len(said(screen))
        lines.print_if_due()
        at += [clock.now - 1000] * (len(said(screen)) - before)
    assert at == pytest.approx([FIRST_SECONDS + k * EVERY_SECONDS for k in range(3)], abs=0.31)
    assert said(screen)[0] == "step 3 of 9; 10.0 s so far"


def test_another_line_delays_the_next_one(clock: Clock) -> None:
    screen = a_log()
    lines = PlainLines(screen, lambda: "training")
    for _ in range(10):  # a run of 5 s each
        clock.now += 5
        lines.another_said()
        lines.print_if_due()
    assert said(screen) == []


def test_no_lines_on_a_terminal_with_a_cursor_or_without_text(clock: Clock) -> None:
    for screen, words in ((a_log(terminal=True), "training"), (a_log(), "")):
        lines = PlainLines(screen, lambda words=words: words)  # type: ignore[misc]
        clock.now += 60
        lines.print_if_due()
        assert said(screen) == []


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setenv("TERM", "dumb")
    screen = a_log(terminal=True)
    lines = PlainLines(screen, lambda: "training")
    clock.now += 60
    lines.print_if_due()
    assert len(said(screen)) == 1


def test_by_itself_it_looks_and_leaves_signals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmark.terminal.plain_lines.FIRST_SECONDS", 0.05)
    blocked: list[set[int]] = []

    def words() -> str:
        blocked.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))  # type: ignore[arg-type]
        return "waiting"

    screen = a_log()
    before = {*threading.enumerate()}
    with PlainLines(screen, words):
        deadline = time.monotonic() + 100
        while not said(screen) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert said(screen)[0].startswith("waiting; ")
    assert {signal.SIGINT, signal.SIGTERM} <= blocked[0]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert {*threading.enumerate()} <= before


class ARun:
    blocks = None
    title = "mnist-mlp32 numpy fast cpu"
    turn = "round 1"


class ATask:
    runs = (ARun(),)
    first = ARun()


def test_a_run_says_what_it_is_how_far_and_what_is_left(clock: Clock) -> None:
    screen = a_log()
    task = cast(Any, ATask())
    with RunProgress(screen, [ATask(), ATask()], Path()) as progress:  # type: ignore[list-item]
        progress.task_started(task)
        progress.run_started(task, ARun(), replayed=False)  # type: ignore[arg-type]
        clock.now += 2
        progress.counted(task, 0)
        progress.answered(task, Ready(steps=400, epochs=2))
        progress.answered(task, Compiled(None))
        clock.now += 10
        progress.counted(task, 100)
    (line,) = said(screen)
    assert line.startswith("mnist-mlp32 numpy fast cpu, round 1: step 100 of 400, epoch 1/2, ~")
    # 30 s of this one, and 42 s of its like
    assert "~72.0 s left; 12.0 s so far" in line


def test_a_run_that_compiles_says_so(clock: Clock) -> None:
    screen = a_log()
    task = cast(Any, ATask())
    with RunProgress(screen, [ATask()], Path()) as progress:  # type: ignore[list-item]
        progress.task_started(task)
        progress.run_started(task, ARun(), replayed=False)  # type: ignore[arg-type]
        progress.answered(task, Ready(steps=400, epochs=2))
        clock.now += 12
        progress.counted(task, 0)
        progress.answered(task, Compiled(40.0))
        clock.now += 40
        progress.counted(task, 0)
    compiling, compiled = said(screen)
    assert "step 0 of 400, compiling" in compiling
    assert "step 0 of 400, epoch 1/2" in compiled


def test_a_study_says_its_share(clock: Clock) -> None:
    screen = a_log()
    progress = WorkProgress(screen, "Timing")
    with progress:
        progress.on_progress("round 2 of 8", 0.25)
        clock.now += FIRST_SECONDS
        progress._lines.print_if_due()
    assert said(screen)[0] == "Timing."
    assert any("round 2 of 8, 25 % done, ~" in line for line in said(screen))
