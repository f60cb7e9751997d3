"""What loading batches does: at which lines, for which data, and whether numbers are drawn."""

from __future__ import annotations

import functools
import json
import os
import random
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data._utils import fetch, worker

from ...patch import around
from .. import lines
from ..lines import Loaded, Samples

_LOOKS = 5
"""Number of first batches of a data set for which it is looked whether they draw numbers."""
_MOST_BYTES = 4096
"""Longest message that the system passes on as a whole."""
_MOST_PROCESSES = 64
"""Number of latest processes of a loader whose samples are kept."""
_DRAWING = {
    "choice",
    "integers",
    "normal",
    "permutation",
    "rand",
    "randint",
    "randn",
    "random",
    "shuffle",
    "standard_normal",
    "uniform",
}
"""Names of functions that draw random numbers, by any generator."""


class Loading:
    """What is known of loading.

    Processes that load batches are only seen if they are forked from this one, as they are by
    default on Linux: they write into a pipe.

    Args:
        observer: knows which code is the user's.
    """

    def __init__(self, observer: Any) -> None:
        self._observer = observer
        self._process = os.getpid()
        self._now: int | None = None
        self._latest: int | None = None
        self._evaluated: set[int] = set()
        self._trained: set[int] = set()
        self._looks: dict[int, int] = {}
        self._drawing: set[int] = set()
        self._of_process: dict[int, tuple[int, Loaded]] = {}
        self._unread = b""
        self._reads, self._writes = os.pipe()
        for end in (self._reads, self._writes):
            os.set_blocking(end, False)
        around(worker, "_worker_loop", self._works)
        for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
            around(kind, "fetch", self._fetches)

    # In the training process

    def fetch(self, real: Callable[..., Any], iterator: Any) -> Any:
        """Fetch a batch."""
        self._now = id(iterator._dataset)
        try:
            batch = real(iterator)
            self._latest = self._now
            return batch
        finally:
            self._now = None

    def use(self, *, is_evaluated: bool) -> None:
        """Note that the network gets the latest batch, if it has not got it before."""
        if self._latest is not None:
            (self._evaluated if is_evaluated else self._trained).add(self._latest)
            self._latest = None

    def is_evaluated(self) -> bool:
        """Whether what is being loaded is only evaluated."""
        return self._now in self._evaluated - self._trained

    def draws(self) -> bool:
        """Whether loading what is trained on draws random numbers."""
        self._read()
        return not self._trained.isdisjoint(self._drawing)

    def loaded(self) -> list[Loaded]:
        """Return what each process does that loads what is trained on."""
        self._read()
        return [each for data, each in self._of_process.values() if data in self._trained]

    def _read(self) -> None:
        """Read what the processes have written."""
        try:
            self._unread += os.read(self._reads, 64 * _MOST_BYTES)
        except BlockingIOError:
            return
        *messages, self._unread = self._unread.split(b"\n")
        for each in messages:
            process, data, draws, *loaded = json.loads(each)
            self._of_process[process] = (data, Loaded(*loaded))
            if draws:
                self._drawing.add(data)
        for process in list(self._of_process)[:-_MOST_PROCESSES]:
            del self._of_process[process]

    # In the process that loads

    def _works(self, real: Callable[..., Any], kind: Any, data: Any, /, *args: Any) -> Any:
        """Sample this process, which loads batches of a data set."""
        if os.getpid() != self._process:
            lines.sample(self._observer, functools.partial(self._write, id(data)))
        return real(kind, data, *args)

    def _write(self, data: int, samples: Samples) -> None:
        if not samples.total:
            return
        loaded = samples.loaded()
        message = [os.getpid(), data, data in self._drawing, *loaded]
        text = json.dumps(message).encode() + b"\n"
        if len(text) <= _MOST_BYTES:
            try:
                os.write(self._writes, text)
            except BlockingIOError:  # the pipe is full; what is written later has it, too
                return

    def _fetches(self, real: Callable[..., Any], fetcher: Any, indices: Any) -> Any:
        """Fetch a batch, and look whether this draws random numbers."""
        data = id(fetcher.dataset)
        looks = self._looks.get(data, 0)
        if looks >= _LOOKS or data in self._drawing:
            return real(fetcher, indices)
        self._looks[data] = looks + 1
        before = _random_states()
        batch = real(fetcher, indices)
        if before != _random_states() or _calls_drawing(fetcher.dataset):
            self._drawing.add(data)
        return batch


def _random_states() -> tuple[Any, ...]:
    """Return where the random numbers are that all of a process share."""
    numpy: Any = sys.modules.get("numpy")
    of_numpy = None if numpy is None else numpy.random.get_state(legacy=False)
    return random.getstate(), bytes(torch.get_rng_state().numpy()), repr(of_numpy)


def _calls_drawing(data: Any) -> bool:
    """Whether a data set calls functions with names of those that draw random numbers."""
    code = getattr(getattr(type(data), "__getitem__", None), "__code__", None)
    return code is not None and not _DRAWING.isdisjoint(code.co_names)
