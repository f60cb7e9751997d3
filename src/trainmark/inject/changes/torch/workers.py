"""Samples the worker processes of loaders.

They are only seen if they are forked from the training process, as they are by default on Linux up
to Python 3.13: they write into a pipe.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data._utils import fetch, worker

from ...patch import around
from ..known import OF_LOADING, names_of_code
from ..lines import Loaded, pauses, without_collector

_MOST_BYTES = min(4096, getattr(select, "PIPE_BUF", 512))
"""Longest message that the system passes on as a whole."""
_MOST_LINES = 10
"""Most lines in a message."""
_MOST_PROCESSES = 64
"""Number of latest processes whose samples are kept."""
_TELL_EVERY = 10
"""Number of samples between two messages."""


class Workers:
    """Samples processes that load batches, and receives what they were doing.

    Args:
        observer: knows which code is the user's.
        draws: whether loading from the data set with this identity draws random numbers.
    """

    def __init__(self, observer: Any, draws: Callable[[int], bool]) -> None:
        self._observer = observer
        self._draws = draws
        self._process = os.getpid()
        self._of_process: dict[int, tuple[int, Loaded]] = {}
        self._drawing: set[int] = set()
        self._unread = b""
        self._reads: int | None = None
        if not hasattr(os, "fork"):
            return
        self._reads, self._writes = os.pipe()
        for end in (self._reads, self._writes):
            os.set_blocking(end, False)
        around(worker, "_worker_loop", self._works)

    def loaded(self, data: set[int]) -> list[Loaded]:
        """Return the samples of each process that loads from these data sets."""
        self._read()
        return [each for of, each in self._of_process.values() if of in data]

    def drawing(self) -> set[int]:
        """Return the data sets that draw random numbers, as far as processes have reported."""
        self._read()
        return self._drawing

    def _read(self) -> None:
        if self._reads is None:
            return
        try:
            self._unread += os.read(self._reads, 1 << 18)
        except BlockingIOError:
            return
        *messages, self._unread = self._unread.split(b"\n")
        for each in messages:
            try:
                process, data, draws, *loaded = json.loads(each)
            except ValueError:  # another process has written in between
                continue
            self._of_process[process] = (data, Loaded(*loaded))
            if draws:
                self._drawing.add(data)
        for process in list(self._of_process)[:-_MOST_PROCESSES]:
            del self._of_process[process]

    # In the process that loads

    def _works(self, real: Callable[..., Any], kind: Any, data: Any, /, *args: Any) -> Any:
        """Sample this process while it loads batches of a data set."""
        if os.getpid() != self._process:
            thread = threading.get_ident()
            watches = threading.Thread(
                target=self._watch, args=(id(data), thread, sys._getframe(0)), daemon=True
            )
            watches.start()
        return real(kind, data, *args)

    def _watch(self, data: int, thread: int, outermost: Any) -> None:
        samples = _Samples(self._observer)
        for pause in pauses():
            time.sleep(pause)
            with without_collector():
                samples.add(list(_below(sys._current_frames().get(thread), outermost)))
            if samples.total and samples.total % _TELL_EVERY == 0:
                self._write(data, samples)

    def _write(self, data: int, samples: _Samples) -> None:
        for most in (_MOST_LINES, 3, 1, 0):
            message = [os.getpid(), data, self._draws(data), *samples.loaded(most)]
            text = json.dumps(message).encode() + b"\n"
            if len(text) <= _MOST_BYTES:
                break
        try:
            os.write(self._writes, text)
        except BlockingIOError:  # the pipe is full; later messages include these samples
            return


def _below(frame: Any, outermost: Any) -> Iterator[Any]:
    """Yield the frames of this process, without those inherited from the training."""
    while frame is not None and frame is not outermost:
        yield frame
        frame = frame.f_back


class _Samples:
    """Samples of a worker process while it loads.

    Args:
        observer: knows which code is the user's.
    """

    def __init__(self, observer: Any) -> None:
        self._observer = observer
        self.total = 0
        self._lines: Counter[str] = Counter()
        self._known: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, frames: list[Any]) -> None:
        """Count a sample, unless the process waits for work."""
        fetches = (frame.f_code.co_filename == fetch.__file__ for frame in frames)
        if not any(fetches):
            return
        self.total += 1
        users = next(filter(self._observer.is_users, frames), None)
        place = self._observer.users_place(users)
        if place is None:
            return
        self._lines[place] += 1
        names = set().union(*(names_of_code(frame.f_code) for frame in frames))
        for name in names & OF_LOADING:
            self._known[name][place] += 1

    def loaded(self, most: int) -> Loaded:
        """Return the largest numbers of samples."""
        totals = Counter({name: sum(places.values()) for name, places in self._known.items()})
        largest = [name for name, _ in totals.most_common(most)]
        known = {name: dict(self._known[name].most_common(1)) for name in largest}
        return Loaded(self.total, dict(self._lines.most_common(most)), known)
