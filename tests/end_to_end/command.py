"""The command line with the fake backend, in the process of the tests or, where that is the point,
in a new one."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import psutil

from trainmark.cli import main
from trainmark.data.locate import Located
from trainmark.record.record import Record
from trainmark.record.store import load

T = TypeVar("T")


@dataclass
class CommandLine:
    """``trainmark run`` on synthetic digits into a folder."""

    data: Located
    cache_home: Path
    out: Path

    def start(
        self,
        *arguments: str,
        fake: dict[str, Any] | None = None,
        before: Sequence[str] = (),
        extra: dict[str, str] | None = None,
        keep: Sequence[int] = (),
    ) -> subprocess.Popen[str]:
        """Start it, with the words of another command ``before`` it, ``extra`` in its environment
        and the file descriptors ``keep``; don't wait."""
        return subprocess.Popen(
            [*before, sys.executable, "-m", "trainmark", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env=self._environment(fake, extra or {}),
            pass_fds=keep,
        )

    def run(self, *arguments: str, fake: dict[str, Any] | None = None) -> tuple[int, str, str]:
        """Run it in this process, which saves the start of Python; return exit code, stdout and
        stderr.

        What it measures still runs in other processes.
        """
        printed = out, err = [
            io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)
        ]
        environment = mock.patch.dict(os.environ, self._environment(fake, {}), clear=True)
        with environment, redirect_stdout(out), redirect_stderr(err):
            code = main.run(list(arguments))
        stdout, stderr = (stream.buffer.getvalue().decode() for stream in printed)  # type: ignore[attr-defined]
        return code, stdout, stderr

    def run_alone(
        self,
        *arguments: str,
        fake: dict[str, Any] | None = None,
        extra: dict[str, str] | None = None,
        seconds: float = 240.0,
    ) -> tuple[int, str, str]:
        """Run it in a new process, as a person does; return exit code, stdout and stderr."""
        process = self.start(*arguments, fake=fake, extra=extra)
        try:
            out, err = process.communicate(timeout=seconds)
        except (
            BaseException
        ):  # otherwise the output, or the warning itself, would reach the next test
            process.kill()
            process.communicate()
            raise
        return process.returncode, out, err

    def _environment(self, fake: dict[str, Any] | None, extra: dict[str, str]) -> dict[str, str]:
        kept = {
            key: value
            for key, value in os.environ.items()
            if key not in ("TRAINMARK_DATA", "PYTHONUNBUFFERED")
        }
        return (
            kept
            | {"TRAINMARK_FAKE": json.dumps(fake or {}), "XDG_CACHE_HOME": str(self.cache_home)}
            | extra
        )

    def train_arguments(self, *arguments: str) -> list[str]:
        """A short training with the fake, on digits that need no network."""
        return [
            "run",
            "mnist-mlp128",
            "--backend",
            "fake",
            "--style",
            "fast",
            "--dataset",
            "synthetic-digits",
            "--steps",
            "40",
            "--budget",
            "0",
            "--out",
            str(self.out),
            *arguments,
        ]

    def train(self, *arguments: str, fake: dict[str, Any] | None = None) -> tuple[int, str, str]:
        """Run such a training to its end."""
        return self.run(*self.train_arguments(*arguments), fake=fake)

    def records(self) -> list[Record]:
        """The files that it left."""
        return load([self.out]) if self.out.is_dir() and list(self.out.glob("*.json")) else []

    def leftovers(self) -> list[str]:
        """Return the files in the folder that are neither a record nor weights."""
        if not self.out.is_dir():
            return []
        known = (".json", ".safetensors")
        return [path.name for path in self.out.iterdir() if path.suffix not in known]

    def outcomes(self) -> list[str]:
        """Return the status of each record, in order."""
        return [record.outcome.status for record in self.records()]


def descendants(pid: int) -> list[psutil.Process]:
    """Return the descendants of a process."""
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def measured(pid: int, *, deep: bool = False) -> list[psutil.Process]:
    """Return the children of a process that were started to be measured; with ``deep``, those among
    all its descendants.

    A process that was just forked shows the words of its parent until it has become its own
    program: deep down something that a measured process starts may be counted, too.
    """
    below = descendants(pid) if deep else children(pid)
    return [process for process in below if "execute/worker/bootstrap.py" in command_of(process)]


def children(pid: int) -> list[psutil.Process]:
    """Return the children of a process."""
    try:
        return list(psutil.Process(pid).children())
    except psutil.NoSuchProcess:
        return []


def command_of(process: psutil.Process) -> str:
    """Return the words that it was started with; none once it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def alive(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Return those that still run; zombies don't count."""
    return [process for process in processes if _is_alive(process)]


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_until(holds: Callable[[], T], seconds: float = 120.0) -> T:
    """Return the result of ``holds()`` as soon as it is true; fails if it never is, even on a busy
    machine."""
    import time

    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return found
