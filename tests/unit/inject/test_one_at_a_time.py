"""Processes that start together compute their first step one after the other."""

from __future__ import annotations

import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainmark.inject import one_at_a_time
from trainmark.inject.one_at_a_time import VARIABLE, OneAtATime
from trainmark.inject.processes import Processes

HOLDS = """
import os, sys, time
from trainmark.inject.one_at_a_time import OneAtATime
from trainmark.inject.processes import Processes
turn = OneAtATime(Processes("nowhere"))
turn.begins()
if os.fork() == 0:  # it has the locked file until it ends
    time.sleep(12.0)
    os._exit(0)
print("computes", flush=True)
sys.stdin.readline()
turn.ends()
print("waits", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "starts"
    path.touch()
    monkeypatch.setenv(VARIABLE, str(path))
    return path


def holder() -> subprocess.Popen[str]:
    """Start a process that computes its first step until it gets a line."""
    words = [sys.executable, "-c", HOLDS]
    process = subprocess.Popen(words, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "computes\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    """End a process, without waiting for the one that it has forked."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


@pytest.mark.usefixtures("file")
def test_the_next_one_computes_once_the_first_step_is_over() -> None:
    other = holder()
    assert other.stdin is not None and other.stdout is not None
    mine = subprocess.Popen(
        [sys.executable, "-c", HOLDS], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert mine.stdout is not None
    try:
        readable, _, _ = select.select([mine.stdout], [], [], 2.0)
        assert not readable, "it waits"
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline() == "waits\n"
        readable, _, _ = select.select([mine.stdout], [], [], 8.0)
        assert readable, "the process that the other one has forked does not matter"
        assert mine.stdout.readline() == "computes\n"
    finally:
        for process in (mine, other):
            end(process)


@pytest.mark.usefixtures("file")
def test_a_process_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_at_a_time, "LONGEST_WAIT_SECONDS", 0.2)
    other = holder()
    try:
        began = time.monotonic()
        OneAtATime(Processes("nowhere")).begins()
        assert time.monotonic() - began >= 0.2
    finally:
        end(other)


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize(("name", "value"), [("WORLD_SIZE", "2"), ("TRAINMARK_PROCESS", "1")])
def test_processes_that_train_together_do_not_wait(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    other = holder()
    try:
        monkeypatch.setenv(name, value)
        began = time.monotonic()
        OneAtATime(Processes("nowhere")).begins()
        assert time.monotonic() - began < one_at_a_time.LONGEST_WAIT_SECONDS / 2
    finally:
        end(other)


def test_no_process_waits_without_a_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = holder()
    try:
        for path in (None, str(file.parent / "absent")):
            if path is None:
                monkeypatch.delenv(VARIABLE)
            else:
                monkeypatch.setenv(VARIABLE, path)
            turn = OneAtATime(Processes("nowhere"))
            turn.begins()
            turn.ends()
        assert other.poll() is None
    finally:
        end(other)
