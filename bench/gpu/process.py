"""Commands with a time limit, which end together with everything that they started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpu.wheels import ROOT

GRACE_SECONDS = 10.0
"""Time for an interrupted command to write its records before it is killed; part of its limit."""
LONGEST_SHOWN = 70
"""Characters of a command that are shown."""
LAST_LINES = 8
"""How many lines of an error are kept."""
PR_SET_PDEATHSIG = 1
"""From Linux's prctl.h."""


@dataclass(frozen=True)
class Ran:
    """A command that ended.

    Args:
        shown: the command, for people.
        printed: what it wrote to standard output.
        errors: what it wrote to standard error.
        status: its exit status.
        stopped: why it was interrupted; empty if it ended by itself.
    """

    shown: str
    printed: str
    errors: str
    status: int
    stopped: str = ""

    @property
    def problem(self) -> str:
        """What went wrong; empty if nothing did."""
        if self.stopped:
            return f"`{self.shown}` {self.stopped}"
        if self.status:
            return (
                f"`{self.shown}` ended with {self.status}: "
                f"{last_lines(self.errors or self.printed)}"
            )
        return ""

    @property
    def problems(self) -> tuple[str, ...]:
        """The problem, if there is one."""
        return (self.problem,) if self.problem else ()


@dataclass
class Processes:
    """Runs commands, one at a time.

    Args:
        scratch: a temporary folder, for what they print.
        environment: their environment variables.
        interrupted: whether Ctrl-C or SIGTERM ended a command; then no further one should start.
    """

    scratch: Path
    environment: dict[str, str]
    interrupted: bool = field(default=False, init=False)

    def run(
        self,
        *command: str,
        seconds: float,
        more: dict[str, str] | None = None,
        grace: float = GRACE_SECONDS,
    ) -> Ran:
        """Run a command from the checkout.

        Args:
            command: its words.
            seconds: its limit. The command is interrupted early enough to write its results.
            more: more environment variables.
            grace: seconds of the limit that are kept for an interrupted command to end.
        """
        shown = _shown(command)
        with (self.scratch / "out").open("w+b") as out, (self.scratch / "err").open("w+b") as err:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=ROOT,
                env={**self.environment, **(more or {})},
                start_new_session=True,  # Ctrl-C must reach only the parent
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
            stopped = ""
            try:
                process.wait(max(seconds - grace, seconds / 2))
            except subprocess.TimeoutExpired:
                stopped = f"was stopped after {seconds:.0f} s"
            except KeyboardInterrupt:
                self.interrupted = True
                stopped = "was interrupted"
            finally:
                _end(process, min(grace, seconds / 2))
            return Ran(shown, _text(out), _text(err), process.returncode, stopped)


def _shown(command: Sequence[str]) -> str:
    """Return the beginning of a command, for people: its first words show what it does."""
    words = [Path(command[0]).name, *command[1:]]
    text = shlex.join(words).removeprefix("python -m ")
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def last_lines(text: str, lines: int = LAST_LINES) -> str:
    """Return the end of what a command printed."""
    return "\n".join([line.rstrip() for line in text.splitlines() if line.strip()][-lines:])


def _die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies, so that it can't block the folder for
    the next call."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """Interrupt a command, then kill it and what it left behind."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            process.wait(grace)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _text(file: object) -> str:
    file.seek(0)  # type: ignore[attr-defined]
    return str(file.read().decode(errors="replace"))  # type: ignore[attr-defined]
