"""What each interpreter can do: asked in a child process, since importing a framework may be slow, or crash."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from trainmark.errors import UsageError
from trainmark.execute.child import converse
from trainmark.execute.wire import Message

PROBE_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Interpreter:
    """A Python that trains. ``default`` is the one that trainmark itself runs in."""

    label: str
    path: Path


THIS = Interpreter("default", Path(sys.executable))


@dataclass(frozen=True)
class SeenDevice:
    """A device as a backend reported it from its own process."""

    id: str
    name: str | None
    kind: str
    memory_bytes: int | None
    precisions: tuple[str, ...]


@dataclass(frozen=True)
class Seen:
    """What a backend said of itself in one interpreter; ``problem`` tells why it could not, and the rest is empty."""

    backend: str
    interpreter: Interpreter
    version: str | None = None
    python: str | None = None
    styles: tuple[str, ...] = ()
    devices: tuple[SeenDevice, ...] = ()
    kinds: frozenset[str] = frozenset()
    problem: str | None = None

    def device(self, device_id: str) -> SeenDevice | None:
        """The device of that id, if the backend sees it."""
        return next((device for device in self.devices if device.id == device_id), None)


def probe(interpreter: Interpreter, backend: str) -> Seen:
    """Ask ``interpreter`` what ``backend`` can do in it; a process of its own, so that no other answer dies with it.

    Raises:
        UsageError: there is no such interpreter.
    """
    answers: list[Seen] = []

    def hear(message: Message) -> None:
        if message["event"] == "capabilities":
            answers.append(_seen(interpreter, message))

    try:
        ending = converse(
            interpreter.path,
            lambda _: {"event": "probe", "backend": backend},
            hear=hear,
            timeout=PROBE_TIMEOUT_SECONDS,
        )
    except OSError as error:
        raise UsageError(
            f"{interpreter.path} can't be started",
            expected=f"a Python interpreter for the label {interpreter.label!r}",
            found=error.strerror or str(error),
            fix="--python LABEL=/path/to/bin/python",
        ) from error
    if answers:
        return answers[0]
    last_words = (ending.tail.strip().splitlines() or [""])[-1]
    problem = ending.reason or "no answer"
    return Seen(backend, interpreter, problem=f"{problem}: {last_words}" if last_words else problem)


def _seen(interpreter: Interpreter, message: Message) -> Seen:
    return Seen(
        backend=message["backend"],
        interpreter=interpreter,
        version=message["version"],
        python=message["python"],
        styles=tuple(message["styles"]),
        devices=tuple(
            SeenDevice(each["id"], each["name"], each["kind"], each["memory_bytes"], tuple(each["precisions"]))
            for each in message["devices"]
        ),
        kinds=frozenset(message["kinds"]),
    )
