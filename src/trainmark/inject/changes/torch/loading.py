"""Which data is trained on, and whether loading it draws random numbers."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data._utils import fetch

from ...patch import around
from ..lines import Loaded
from .workers import Workers

_LOOKS = 5
"""How many of a data set's first batches are checked for random draws."""
_MOST_KEPT = 50
"""Number of data sets that are kept alive."""
_DEPTH = 3
"""How many objects deep a data set is searched for generators."""


class Loading:
    """Which data sets are trained on, and which draw random numbers.

    Args:
        observer: knows which code is the user's.
    """

    def __init__(self, observer: Any) -> None:
        self._now: int | None = None
        self._latest: int | None = None
        self._evaluated: set[int] = set()
        self._trained: set[int] = set()
        self._looks: dict[int, int] = {}
        self._kept: dict[int, Any] = {}
        self._drawing: set[int] = set()
        self._workers = Workers(observer, self._drawing.__contains__)
        for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
            around(kind, "fetch", self._fetches)

    def fetch(self, real: Callable[..., Any], iterator: Any) -> Any:
        """Fetch a batch."""
        self._now = self._identity(iterator._dataset)
        try:
            batch = real(iterator)
            self._latest = self._now
            return batch
        finally:
            self._now = None

    def _identity(self, data: Any) -> int:
        """Return the identity of a data set, which is kept: another one would get the same."""
        if len(self._kept) < _MOST_KEPT:
            self._kept.setdefault(id(data), data)
        return id(data)

    def use(self, *, is_evaluated: bool) -> None:
        """Note that the network gets the latest batch, if it has not got it before."""
        if self._latest is not None:
            (self._evaluated if is_evaluated else self._trained).add(self._latest)
            self._latest = None

    def is_evaluated(self) -> bool:
        """Whether what is being loaded is only evaluated."""
        return self._now in self._evaluated - self._trained

    def draws(self) -> bool:
        """Whether loading what is trained on draws random numbers, as far as is known."""
        return not self._trained.isdisjoint(self._drawing | self._workers.drawing())

    def loaded(self) -> list[Loaded]:
        """Return the samples of each process that loads training data."""
        return self._workers.loaded(self._trained)

    def _fetches(self, real: Callable[..., Any], fetcher: Any, indices: Any) -> Any:
        """Fetch a batch, and look whether this draws random numbers."""
        data = self._identity(fetcher.dataset)
        looks = self._looks.get(data, 0)
        if looks >= _LOOKS or data in self._drawing:
            return real(fetcher, indices)
        self._looks[data] = looks + 1
        before = _states(fetcher.dataset)
        batch = real(fetcher, indices)
        if before is None or before != _states(fetcher.dataset):
            self._drawing.add(data)
        return batch


def _states(data: Any) -> list[Any] | None:
    """Return the states of the process's generators, and of those that a data set holds.

    The result is None if they can't be read.
    """
    try:
        shared = [random.getstate(), torch.get_rng_state().tolist()]
        numpy: Any = sys.modules.get("numpy")
        if numpy is not None:
            shared.append(repr(numpy.random.get_state(legacy=False)))
        return shared + [_state(each) for each in _generators(data)]
    except Exception:  # noqa: BLE001  (objects of the user's; the batch must not be lost)
        return None


def _generators(thing: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """Yield the generators that an object and its module hold."""
    module = sys.modules.get(type(thing).__module__)
    held = [*getattr(thing, "__dict__", {}).values()]
    if depth == _DEPTH:
        held += vars(module).values() if module is not None else ()
    for each in held:
        if _is_generator(each):
            yield each
        elif depth and type(each).__module__ == type(thing).__module__:
            yield from _generators(each, depth - 1)
    inner = getattr(thing, "dataset", None)  # as in Subset
    if depth and inner is not None:
        yield from _generators(inner, depth - 1)


def _is_generator(thing: Any) -> bool:
    numpy: Any = sys.modules.get("numpy")
    of_numpy = () if numpy is None else (numpy.random.Generator, numpy.random.RandomState)
    return isinstance(thing, (random.Random, torch.Generator, *of_numpy))


def _state(generator: Any) -> Any:
    """Return the state of a generator."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, torch.Generator):
        return generator.get_state().tolist()
    if hasattr(generator, "bit_generator"):
        return repr(generator.bit_generator.state)
    return repr(generator.get_state(legacy=False))
