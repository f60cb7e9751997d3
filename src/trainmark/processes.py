"""Finds and ends the processes that a command has started."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

_LOOK_EVERY_SECONDS = 0.05


def descendants(pid: int) -> Iterator[int]:
    """Yield the running descendants of ``pid``; none if the system has no /proc."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            _, _, rest = (folder / "stat").read_text(errors="replace").rpartition(")")
            state, parent = rest.split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(folder.name))
    waiting = list(children.get(pid, ()))
    while waiting:
        found = waiting.pop()
        yield found
        waiting += children.get(found, ())


def end_marked(entry: str, but: int = 0) -> int:
    """End this user's other processes whose environment has an entry; returns their number.

    It finds those that are no descendants any more; none if the system has no /proc.

    Args:
        entry: such as ``NAME=value``.
        but: id of a process that goes on.
    """
    found = [pid for pid in _marked(entry.encode()) if pid not in (but, os.getpid())]
    send_signal(found, signal.SIGKILL)
    return len(found)


def _marked(entry: bytes) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            is_ours = folder.stat().st_uid == os.getuid()
            if is_ours and entry in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


def send_signal(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to those of these processes that are still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end_descendants(grace: float = 0.0) -> int:
    """End all descendants of this process, adopted orphans included; returns their number.

    Args:
        grace: seconds in which they may end by themselves.
    """
    event = threading.Event()
    waited = 0.0
    left = list(descendants(os.getpid()))
    while left and waited < grace:
        event.wait(_LOOK_EVERY_SECONDS)
        waited += _LOOK_EVERY_SECONDS
        left = list(descendants(os.getpid()))
    ended: set[int] = set()
    while left:
        ended.update(left)
        send_signal(left, signal.SIGKILL)
        _reap()
        left = [pid for pid in descendants(os.getpid()) if pid not in ended]
    return len(ended)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
