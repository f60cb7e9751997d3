"""The connection between parent and child: one JSON object per line, on a separate socket.

Frameworks print on stdout and stderr, so neither is used. Both ends are Python, so the non-finite
numbers of its ``json`` are allowed. The child reports its position by counting steps in shared
memory, which costs almost nothing and needs no message.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from trainmark import scratch
from trainmark.errors import ProtocolError

Message = dict[str, Any]
"""A message: an ``event``, and the fields of the class of that name in ``requests`` or
``answers``."""
Send = Callable[[object], None]
"""Sends an answer."""
POSITION_BYTES = mmap.PAGESIZE
"""Bytes of the page in which the child counts its steps."""
SCRATCH = scratch.VARIABLE
"""Environment variable: path of a folder that the parent removes, however the child ends."""
SCRATCH_PREFIX = scratch.PREFIX
"""Prefix of the names of such folders."""
LONGEST_SECONDS = 1e12
"""Largest plausible duration: thirty thousand years."""
_MOST_LINE_BYTES = 64 * 2**20
"""Most bytes of one message, so that a line without an end can't fill the memory."""
_MOST_BYTES = 256 * 2**20
"""Most bytes from one side: the losses of about ten million steps."""


class Channel:
    """One end of the connection."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._pending = bytearray()
        self._received = 0

    def fileno(self) -> int:
        """Return the descriptor, for ``selectors``."""
        return self._end.fileno()

    def send(self, message: object) -> None:
        """Send a dataclass or a message; raises OSError if the other end is closed."""
        self._end.sendall(
            encoded(message if isinstance(message, dict) else to_message(message)) + b"\n"
        )

    def receive(self) -> Iterator[Message] | None:
        """Return the messages that have arrived, after waiting for at least one byte.

        The result is None if the other end is closed.

        Raises:
            ProtocolError: a line that is not a JSON object, or that never ends.
        """
        try:
            arrived = self._end.recv(1 << 16)
        except ConnectionError:
            return None
        if not arrived:
            return None
        self._received += len(arrived)
        if self._received > _MOST_BYTES:
            raise ProtocolError(
                "the measured process sends too much", found=f"more than {_MOST_BYTES:,} bytes"
            )
        self._pending += arrived
        if b"\n" not in arrived:
            if len(self._pending) > _MOST_LINE_BYTES:
                found = f"{len(self._pending):,} bytes"
                raise ProtocolError("the measured process sent a line without an end", found=found)
            return iter(())
        lines = self._pending.split(b"\n")
        self._pending = lines.pop()
        return iter([_parsed(bytes(line)) for line in lines if line])


def to_message(message: object) -> Message:
    """Return a dataclass as a message: its fields, and its class's name as the event."""
    return {"event": type(message).__name__, **vars(message)}


def encoded(value: object) -> bytes:
    """Encode as JSON, including dataclasses and sets."""
    return json.dumps(value, separators=(",", ":"), default=_plain).encode()


def _plain(part: Any) -> list[Any] | dict[str, Any]:
    """Return a set as a sorted list, and a dataclass as its fields."""
    return sorted(part) if isinstance(part, frozenset) else vars(part)


def signal_name(exit_code: int) -> str:
    """Return the name of the signal in a negative exit code."""
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def shared_page() -> int:
    """Return the descriptor of a page of zeros that both sides map.

    It is in memory if possible, in case the disk is full.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("trainmark-position")
    else:
        descriptor, path = tempfile.mkstemp(prefix="trainmark-position-")
        os.unlink(path)  # noqa: PTH108  (there is nothing here but its name)
    os.truncate(descriptor, POSITION_BYTES)
    return descriptor


def counter(descriptor: int) -> Callable[[], None]:
    """Return the child's side of the shared position: a function that counts one step."""
    shared = memoryview(mmap.mmap(descriptor, POSITION_BYTES)).cast("Q")

    def tick() -> None:
        shared[0] += 1

    return tick


def position(descriptor: int) -> Callable[[], int]:
    """Return the parent's side: a function that returns the child's number of steps."""
    shared = memoryview(mmap.mmap(descriptor, POSITION_BYTES, prot=mmap.PROT_READ)).cast("Q")

    def steps() -> int:
        return shared[0]

    return steps


def broken(expected: str, found: str) -> ProtocolError:
    """Return the error for a message that the measured process should not have sent."""
    return ProtocolError("the measured process broke the protocol", expected=expected, found=found)


def _parsed(line: bytes) -> Message:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict) or not isinstance(message.get("event"), str):
        raise broken("one JSON object with the key 'event' per line", repr(line[:80]))
    return message
