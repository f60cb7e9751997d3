"""Two processes that take turns, so that neighbours in time can be compared that can't live in one process.

Each has a pipe of its own, in which the other puts a byte when it rests. The parent starts the first with a byte, and
when one of them is gone it leaves the other more bytes than it can ever need, which say so.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeVar

_TURN, _ALONE = b".", b"!"
_MORE_THAN_NEEDED = 4096

_T = TypeVar("_T")
_A = TypeVar("_A")
_B = TypeVar("_B")
Seat = tuple[int, int]
"""Descriptors of one process: of the pipe that it reads its turns from, and of the one it gives turns away by."""


class Turn:
    """The child's side. It has the machine from :meth:`take` on, until it rests or ends."""

    def __init__(self, seat: Seat | None) -> None:
        """Without a seat it is its turn always."""
        self._seat = seat

    def take(self) -> None:
        """Wait until it is this process's turn."""
        if self._seat is not None:
            os.read(self._seat[0], 1)

    def rest(self) -> None:
        """Let the other have its turn, and wait for the next one."""
        if self._seat is not None:
            os.write(self._seat[1], _TURN)
            self.take()


class Pids:
    """Processes that may have to be ended from another thread than the one that waits for them."""

    def __init__(self) -> None:
        self._lock, self._ended = threading.Lock(), False
        self._pids: dict[int, int] = {}  # by the thread that waits

    def born(self, pid: int) -> None:
        """This thread waits for one that has begun."""
        with self._lock:
            self._pids[threading.get_ident()] = pid
            if self._ended:
                self._end(pid)

    def gone(self) -> None:
        """This thread waits no more; its process's number may be another's from now on."""
        with self._lock:
            self._pids.pop(threading.get_ident(), None)

    def end(self) -> None:
        """End all processes and their descendants, including late ones."""
        with self._lock:
            self._ended = True
            for pid in self._pids.values():
                self._end(pid)

    @staticmethod
    def _end(pid: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def in_turns(first: Callable[[Seat], _A], second: Callable[[Seat], _B], stop: Callable[[], None]) -> tuple[_A, _B]:
    """Hold two conversations at once, each with a process that has one of two seats.

    Args:
        first: holds the conversation with the process that begins, and returns when that is gone.
        second: the same for the other one.
        stop: ends both processes; called when this is interrupted.
    """
    with _pipe() as (a_reads, a_gets), _pipe() as (b_reads, b_gets), ThreadPoolExecutor(2) as threads:

        def hold(conversation: Callable[[Seat], _T], seat: Seat) -> _T:
            try:
                return conversation(seat)
            finally:
                with suppress(OSError):  # interrupted twice, and nobody holds the pipes any more
                    os.write(seat[1], _ALONE * _MORE_THAN_NEEDED)

        os.write(a_gets, _TURN)
        try:
            a = threads.submit(hold, first, (a_reads, b_gets))
            b = threads.submit(hold, second, (b_reads, a_gets))
            return a.result(), b.result()
        except BaseException:
            stop()
            raise


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    with ExitStack() as stack:
        ends = os.pipe()
        for end in ends:
            stack.callback(os.close, end)
        yield ends
