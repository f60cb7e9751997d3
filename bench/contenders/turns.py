"""A contender's side of the rounds: it trains one turn's epochs on each order of its parent, and
sleeps in between.

The parent (`bench/rounds.py`) holds the clock. A contender calls :meth:`Turns.epoch_done` after
every epoch, with all of its work finished. The first turn warms up; every later one is timed from
outside, from the word `go` until the answer. Without a parent, started by hand, a contender prints
the seconds of each turn itself.

    python bench/contenders/torch_loader.py mnist-mlp512 FOLDER 5

Standard library only, Python 3.10 and newer: it runs in whichever interpreter has the framework.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

DESCRIPTOR = "TRAINMARK_BENCH_TURNS"
EPOCHS_A_TURN = "TRAINMARK_BENCH_EPOCHS_A_TURN"


class Turns:
    """The connection to the parent.

    Attributes:
        workload: name of the workload.
        folder: holds the arrays, see `arrays.py`, and the workload as JSON.
        epochs: to train in all, warm-up included.
    """

    def __init__(self) -> None:
        self.workload, folder, turns = sys.argv[1:4]
        self.folder = Path(folder)
        self._epochs_a_turn = int(os.environ.get(EPOCHS_A_TURN, "1"))
        self.epochs = int(turns) * self._epochs_a_turn
        self._parent = Parent(int(os.environ[DESCRIPTOR])) if DESCRIPTOR in os.environ else Nobody()
        self._done = 0
        self._facts: dict[str, Any] = {}

    def versions(self, **packages: str) -> None:
        """Versions of what this process runs on, reported when it is ready."""
        self._facts |= packages

    def cannot(self, reason: str) -> None:
        """Leave before the first turn, for a reason that is not a failure."""
        self._parent.tell({"absent": reason})
        sys.exit(0)

    def epoch_done(self, **facts: Any) -> None:
        """Answer when this was the last epoch of a turn, then sleep until the next order."""
        self._done += 1
        if self._done % self._epochs_a_turn:
            return
        first = self._done == self._epochs_a_turn
        self._parent.tell({"ready": self._facts} if first else {"done": facts})
        self._parent.wait()

    def test_accuracy(self, accuracy: float) -> None:
        """The last answer, from 0 to 1."""
        self._parent.tell({"test_accuracy": float(accuracy)})


class Parent:
    """The process that holds the clock."""

    def __init__(self, descriptor: int) -> None:
        if sys.platform == "linux":  # elsewhere a killed parent is noticed at the end of the turn
            set_parent_death_signal = 1
            ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
        self._lines = socket.socket(fileno=descriptor).makefile(
            "rw", encoding="utf-8", newline="\n"
        )

    def tell(self, message: dict[str, Any]) -> None:
        self._lines.write(json.dumps(message) + "\n")
        self._lines.flush()

    def wait(self) -> None:
        if self._lines.readline().strip() not in ("go", "test"):
            sys.exit("the parent hung up")


class Nobody:
    """Takes the place of the parent when a contender is started by hand."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def tell(self, message: dict[str, Any]) -> None:
        print(f"{time.perf_counter() - self._start:8.3f} s  {json.dumps(message)}", flush=True)

    def wait(self) -> None:
        self._start = time.perf_counter()
