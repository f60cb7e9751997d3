"""Contenders as processes that train interleaved, one at a time, timed by the clock of this process
alone.

Every contender is its own interpreter (`contenders/turns.py` is its side of the conversation). All
set up and warm up at once; then, in every round, each trains one turn while the others sleep, in an
order that rotates by one each round (A B C, B C A, ...), so that a drift of the machine affects all
alike. One that dies or hangs is left out, with its last output.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contenders.turns import DESCRIPTOR, EPOCHS_A_TURN

WARM_UPS = 2
"""Number of turns before any that counts: one while all set up together, one alone in the order of
a round."""

_LOG_BYTES = 16_384
_ERROR = re.compile(r"[\w.]+(Error|Exception|Exit)\b")
_TERMINAL_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\r")


@dataclass(frozen=True)
class Contender:
    """A contender: a script, the interpreter that runs it, and its arguments besides the workload.

    Args:
        epochs_a_turn: epochs that it trains each time.
        tested: whether it reports a test accuracy at the end.
    """

    name: str
    python: Path
    script: Path
    arguments: tuple[str, ...] = ()
    epochs_a_turn: int = 1
    tested: bool = True


@dataclass(frozen=True)
class Timeouts:
    """Seconds after which a contender counts as hung, and seconds to wait before every turn.

    Args:
        settle: lets the thread pools of the previous contender go to sleep.
    """

    set_up: float = 600
    turn: float = 600
    settle: float = 0.3


@dataclass
class Outcome:
    """What the rounds measured; for a contender that was left out, only the reason.

    Args:
        seconds: of each turn, by contender, ``[rounds]``.
        facts: what it reported about each turn, by contender, ``[rounds]``.
        first: what it reported after its second warm-up turn.
    """

    seconds: dict[str, list[float]] = field(default_factory=dict)
    facts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    first: dict[str, dict[str, Any]] = field(default_factory=dict)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    test_accuracy: dict[str, float] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def leave_out(self, name: str, reason: str) -> None:
        """Drop all its measurements: incomplete rounds can't be paired."""
        for part in (self.seconds, self.facts, self.first, self.test_accuracy):
            part.pop(name, None)
        self.left_out[name] = reason


class Left(Exception):
    """A contender that takes no further turn, and why."""


class Live:
    """One running contender."""

    def __init__(self, contender: Contender, workload: str, folder: Path, turns: int) -> None:
        self.contender = contender
        self._log = folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', contender.name)}.log"
        self._end, theirs = socket.socketpair()
        told = {DESCRIPTOR: str(theirs.fileno()), EPOCHS_A_TURN: str(contender.epochs_a_turn)}
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "PYTHONHOME")
        }
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    str(contender.python),
                    str(contender.script),
                    workload,
                    str(folder),
                    str(turns),
                    *contender.arguments,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(),),
                env={**kept, **told},
                cwd=folder,
                # Ctrl-C reaches this process alone, and the whole group can be ended
                start_new_session=True,
            )
        theirs.close()
        self._lines = self._end.makefile("rw", encoding="utf-8", newline="\n")

    def receive(self, seconds: float) -> dict[str, Any]:
        """Return the next answer.

        Raises:
            Left: it left, died, or sent nothing in time.
        """
        self._end.settimeout(max(seconds, 0.001))
        try:
            line = self._lines.readline()
        except TimeoutError:
            raise Left(f"no answer in {seconds:.0f} s") from None
        except ConnectionError:
            line = ""
        if not line:
            raise Left(self._exit_reason())
        message: dict[str, Any] = json.loads(line)
        if "absent" in message:
            raise Left(message["absent"])
        return message

    def turn(self, order: str, seconds: float) -> tuple[float, dict[str, Any]]:
        """Send the order and wait; return the seconds by this process's clock, and the answer."""
        start = time.perf_counter()
        with contextlib.suppress(BrokenPipeError):  # receiving its answer gives the reason
            self._lines.write(f"{order}\n")
            self._lines.flush()
        answer = self.receive(seconds)
        return time.perf_counter() - start, answer

    def end(self) -> None:
        """End it and everything it started; harmless if it has ended."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with contextlib.suppress(OSError):
            self._lines.close()
        self._end.close()

    def _exit_reason(self) -> str:
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return "closed its connection without ending"
        cause = (
            f"killed by {signal.Signals(-code).name}"
            if code < 0
            else f"ended with exit code {code}"
        )
        written = self._log.read_bytes()[-_LOG_BYTES:].decode(errors="replace")
        words = [
            line.strip() for line in _TERMINAL_CODES.sub("", written).splitlines() if line.strip()
        ]
        # some frameworks print more after it
        errors = [line for line in words if _ERROR.match(line)]
        return f"{cause}: {(errors or words)[-1]}" if words else cause


def compete(
    contenders: Sequence[Contender],
    workload: str,
    folder: Path,
    rounds: int,
    *,
    timeouts: Timeouts | None = None,
    log: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> Outcome:
    """Let all train ``workload`` on the arrays in ``folder``, ``rounds`` turns each after the
    warm-up."""
    timeouts = timeouts or Timeouts()
    outcome = Outcome()
    lives: dict[str, Live] = {}

    def leave(name: str, left: Left) -> None:
        log(f"{workload}: {name} is left out: {left}")
        outcome.leave_out(name, str(left))
        lives.pop(name).end()

    try:
        for contender in contenders:
            lives[contender.name] = Live(contender, workload, folder, WARM_UPS + rounds)
        deadline = time.monotonic() + timeouts.set_up
        for name, live in list(lives.items()):
            try:
                outcome.versions[name] = live.receive(deadline - time.monotonic())["ready"]
            except Left as left:
                leave(name, left)
        for number in range(-1, rounds):
            for name in rotated(list(lives), number):
                time.sleep(timeouts.settle)
                try:
                    seconds, answer = lives[name].turn("go", timeouts.turn)
                except Left as left:
                    leave(name, left)
                    continue
                if number < 0:
                    outcome.first[name] = {"seconds": seconds, **answer["done"]}
                else:
                    outcome.seconds.setdefault(name, []).append(seconds)
                    outcome.facts.setdefault(name, []).append(answer["done"])
            log(
                f"{workload}: "
                f"{'warm-up round' if number < 0 else f'round {number + 1} of {rounds}'} done"
            )
        for name, live in list(lives.items()):
            if not live.contender.tested:
                continue
            try:
                outcome.test_accuracy[name] = live.turn("test", timeouts.turn)[1]["test_accuracy"]
            except Left as left:
                leave(name, left)
    finally:
        for live in lives.values():
            live.end()
    return outcome


def rotated(names: Sequence[str], number: int) -> list[str]:
    """Return the order of a round: it starts one further each time."""
    start = number % len(names) if names else 0
    return [*names[start:], *names[:start]]
