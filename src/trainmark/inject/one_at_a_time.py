"""Processes that start together compute their first step one after the other.

If many of them compute at the same time, on more threads than there are cores, each barrier between
their threads waits for the operating system, and a step takes a hundred times as long.
"""

from __future__ import annotations

import os
import time

from .processes import Processes

try:
    import fcntl
except ImportError:  # as on Windows
    fcntl = None  # type: ignore[assignment]

VARIABLE = "TRAINMARK_STARTS"
"""Environment variable: a file that the process whose turn it is has locked."""
LONGEST_WAIT_SECONDS = 10.0
"""Seconds after which a process no longer waits: another one may hang in its first step."""
_PAUSE_SECONDS = 0.005


class OneAtATime:
    """The turn to compute a first step; without the variable, no process waits.

    Processes that train together never wait: each of them may need what the others compute.

    Args:
        processes: this process among those of its command.
    """

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._path = os.environ.get(VARIABLE)
        self._file: int | None = None

    def begins(self) -> None:
        """Wait for the turn, the first time that this is called."""
        if self._path is None or fcntl is None:
            return
        path = self._path
        self._path = None
        if not self._processes.is_first or self._processes.has_ranks:
            return
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # the others don't wait for this one, either
            return
        ends = time.monotonic() + LONGEST_WAIT_SECONDS
        while time.monotonic() < ends:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(_PAUSE_SECONDS)
            else:
                return

    def ends(self) -> None:
        """The first step is over."""
        self._path = None
        if self._file is not None:
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_UN)  # a forked process may have the file, too
            os.close(self._file)
            self._file = None
