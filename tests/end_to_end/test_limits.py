"""A limit is a limit: hanging and slow trainings end with it, and what was measured is shown.

No test asserts a duration, except that a limit is not exceeded by a generous factor.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.command import CommandLine, wait_until
from tests.slow import slow
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record

MOST_START_SECONDS = 60.0
"""Seconds that starting and ending processes may take on a busy machine."""
ENDLESS = ("--steps", "1000000")

pytestmark = pytest.mark.timeout(900)


@contextmanager
def within(limit: float) -> Iterator[None]:
    """Fail if the body takes far longer than ``limit`` seconds."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 2 * limit + MOST_START_SECONDS


def compared(command: CommandLine, budget: float, fake: dict[str, Any], *more: str) -> str:
    """Train both devices of the fake within ``budget`` seconds; return what is printed."""
    arguments = command.train_arguments("--device", "cpu,cuda:0", *more)
    with within(budget):
        _, out, err = command.run(*arguments, "--budget", str(budget), fake=fake)
    assert "Traceback" not in err
    assert command.leftovers() == []
    return out + err


def by_device(command: CommandLine) -> dict[str | None, list[Record]]:
    found: dict[str | None, list[Record]] = {}
    for record in command.records():
        found.setdefault(record.device.id, []).append(record)
    return found


def test_trainings_far_longer_than_the_budget_give_a_speed(command: CommandLine) -> None:
    printed = compared(command, 30.0, {"step_seconds": 0.004}, *ENDLESS)
    assert "learning is not judged; --budget 0 runs all of them" in printed
    assert set(command.outcomes()) == {"ok"}
    for records in by_device(command).values():
        assert any(record.slices for record in records)
        assert not any(record.epochs for record in records)
        assert not any(Caveat.NOT_LEARNING in record.caveats for record in records)


def test_a_training_alone_ends_at_a_step(command: CommandLine) -> None:
    arguments = command.train_arguments(*ENDLESS, "--device", "cpu", "--repeats", "1")
    with within(15.0):
        code, out, err = command.run(*arguments, "--budget", "15", fake={"step_seconds": 0.004})
    assert code == 0, err
    (record,) = command.records()
    assert record.outcome.reason == "the budget of 15.0 s ended it"
    assert Caveat.SHORTENED in record.caveats
    assert Caveat.NOT_LEARNING not in record.caveats
    assert sum(epoch.steps or 0 for epoch in record.epochs) == len(record.step_losses) > 1
    assert "learning is not judged" in out.replace("\n", " ")


def test_a_shortened_training_is_resumed(command: CommandLine) -> None:
    arguments = command.train_arguments("--device", "cpu", "--repeats", "1", "--steps", "400")
    code, _, err = command.run(*arguments, "--budget", "6", fake={"step_seconds": 0.1})
    assert code in (0, 1), err
    code, _, err = command.run(*arguments, "--resume", fake={"step_seconds": 0.001})
    assert code == 0, err
    assert [Caveat.SHORTENED in each.caveats for each in command.records()].count(False) == 1


@pytest.mark.slow
def test_a_side_that_is_fifty_times_slower(command: CommandLine) -> None:
    printed = compared(command, 20.0, {"step_seconds": 0.5, "speedup": 50.0}, *ENDLESS)
    assert "learning" in printed or "too short" in printed


@pytest.mark.parametrize("at_step", [slow(0), 20])
def test_a_side_that_hangs_leaves_the_other_one(command: CommandLine, at_step: int) -> None:
    fake = {"fail": "hang", "only_on": "cuda:0", "at_step": at_step, "step_seconds": 0.01}
    printed = compared(command, 12.0, fake)
    assert "fake fast" in printed
    reasons = {record.outcome.reason for record in command.records()}
    assert reasons & {"the budget of 12.0 s ended it"}


@pytest.mark.parametrize("budget", [0.5, 3.0])
def test_a_very_short_budget_says_what_is_missing(command: CommandLine, budget: float) -> None:
    printed = compared(command, budget, {"step_seconds": 0.3}, *ENDLESS)
    missing = "too short|was used up before|ended before any side was measured|learning is not"
    assert re.search(missing, printed)


def test_a_command_that_hangs_is_ended(command: CommandLine) -> None:
    words = [sys.executable, "-c", "import time; time.sleep(3600)"]
    with within(4.0):
        code, _, err = command.run(
            "measure", "--budget", "4", "--out", str(command.out), "--", *words
        )
    assert code == 1
    assert "ended before any side was measured" in err or command.outcomes() == ["timeout"]


def test_ctrl_c_shows_the_table_of_what_is_there(command: CommandLine) -> None:
    arguments = command.train_arguments("--device", "cpu,cuda:0", *ENDLESS, "--budget", "600")
    process = command.start(*arguments, fake={"step_seconds": 0.004})
    wait_until(lambda: "ok" in command.outcomes())
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "cuda:0" in out and "cpu" in out


SCRIPT = """
import atexit, sys, time
import torch
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kind = sys.argv[1]
if kind == "start":
    time.sleep(3600)
if kind == "exit":
    atexit.register(time.sleep, 3600)
for step in range(30 if kind == "exit" else 10**6):
    if kind == "step 20" and step == 20:
        time.sleep(3600)
    if kind == "slow":
        time.sleep(2)
    optimizer.zero_grad()
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
"""


@pytest.fixture
def explain(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Explains a script that hangs somewhere; returns the exit code and what is printed."""
    pytest.importorskip("torch")
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(folder)

    def run(kind: str, seconds: float) -> tuple[int, str, str]:
        words = ["--only", "same-batch", "--only", "foreach", "--json", "--", "python", "train.py"]
        with within(seconds):
            return command.run("explain", "--seconds", str(seconds), *words, kind)

    return run


def test_a_script_that_hangs_before_its_first_step(explain: Callable[..., Any]) -> None:
    code, out, err = explain("start", 4.0)
    assert (code, out) == (1, "")
    assert "0 training steps" in err
    assert not re.search(r"use --seconds \d", err), "how many seconds it needs is not known"


@pytest.mark.parametrize("kind", ["step 20", "exit", "slow"])
def test_a_script_that_hangs_later_or_is_slow(explain: Callable[..., Any], kind: str) -> None:
    code, out, err = explain(kind, 15.0)
    assert "Traceback" not in err
    if code == 0:
        found = json.loads(out)
        assert found["findings"] or found["left_out"]
    else:
        assert "can't be explained" in err


def test_a_limit_of_a_second(explain: Callable[..., Any]) -> None:
    code, _, err = explain("slow", 1.0)
    assert code == 1
    assert "can't be explained" in err
