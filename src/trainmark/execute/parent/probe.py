"""Probe what each interpreter supports in a child process.

Importing a framework may be slow or crash.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from trainmark.backends import registry
from trainmark.backends.base import Capabilities, Device
from trainmark.errors import ProtocolError, UsageError
from trainmark.execute.parent.process import Ending, ask
from trainmark.execute.protocol.answers import Answer, BackendsListed, Capable, of_kind
from trainmark.execute.protocol.worker_commands import ListBackends, Probe, WorkerCommand

PROBE_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Interpreter:
    """A Python that trains. ``default`` is the one that trainmark itself runs in."""

    label: str
    path: Path


THIS = Interpreter("default", Path(sys.executable))


@dataclass(frozen=True)
class Seen:
    """What a backend supports in one interpreter; None, with a ``problem``, if it could not answer.

    ``limited`` is whether its devices' limits can be measured.
    """

    backend: str
    interpreter: Interpreter
    can: Capabilities | None = None
    python: str | None = None
    problem: str | None = None
    limited: bool = False

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that it sees."""
        return self.can.devices if self.can else ()

    def device(self, device_id: str) -> Device | None:
        """The device of that id, if it sees it."""
        return next((device for device in self.devices if device.id == device_id), None)


def probe(interpreter: Interpreter, backend: str, timeout: float = PROBE_TIMEOUT_SECONDS) -> Seen:
    """Ask ``interpreter`` what ``backend`` supports.

    It runs in a separate process, since a crash must not affect others.

    Args:
        timeout: seconds; importing a framework may hang, as on a network drive or a broken driver.

    Raises:
        UsageError: there is no such interpreter.
    """
    try:
        answers, ending = _ask(interpreter, Probe(backend), timeout)
    except ProtocolError as error:
        return Seen(backend, interpreter, problem=str(error))
    for found in of_kind(answers, Capable):
        return Seen(backend, interpreter, found.capabilities, found.python, limited=found.limited)
    if ending.status == "timeout":
        return Seen(
            backend, interpreter, problem=f"no answer within {timeout:g} s: importing it hangs"
        )
    last_words = (ending.tail.strip().splitlines() or [""])[-1]
    problem = ending.reason or "no answer"
    is_known = (
        not last_words or problem in last_words
    )  # a traceback's last line often is the reason
    return Seen(backend, interpreter, problem=problem if is_known else f"{problem}: {last_words}")


def backends_of(interpreter: Interpreter) -> dict[str, str]:
    """The backends registered in ``interpreter``, plug-ins included.

    Each comes with the command that installs it.

    For an interpreter that can't answer, such as one without NumPy, returns the built-in ones.

    Raises:
        UsageError: there is no such interpreter.
    """
    answers, _ = _ask(interpreter, ListBackends(), PROBE_TIMEOUT_SECONDS)
    for found in of_kind(answers, BackendsListed):
        return found.install
    return {entry.name: entry.install for entry in registry.entries().values() if not entry.plugin}


def _ask(
    interpreter: Interpreter, request: WorkerCommand, timeout: float
) -> tuple[list[Answer], Ending]:
    try:
        return ask(interpreter.path, request, timeout=timeout)
    except OSError as error:
        raise UsageError(
            f"{interpreter.path} can't be started",
            expected=f"a Python interpreter for the label {interpreter.label!r}",
            found=error.strerror or str(error),
            fix="--python LABEL=/path/to/bin/python",
        ) from error
