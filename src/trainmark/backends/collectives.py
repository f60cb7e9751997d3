"""What a sum over all ranks takes, by its size: measured on every rank alike, with nothing else to do.

A backend gives the sums; what is done with them, and how it is timed, is the same for all and stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from trainmark.backends.base import Options

SIZES = (4, 2**10, 2**14, 2**16, 2**18, 2**20, 2**22, 2**24)
"""Bytes. The small ones tell the latency, the large ones the bandwidth."""
_ROUNDS = 7
_WINDOW_SECONDS = 0.02  # long against the wait for the last rank
_MOST = 200

Clock = Callable[[], float]


class Reduction(Protocol):
    """Sums over all ranks."""

    def sums(self, size: int) -> Callable[[], object]:
        """A function that sums ``size`` bytes of float32 over all ranks, and returns when the sum is there."""

    def meet(self) -> None:
        """Return when every rank has called it."""


@runtime_checkable
class Collective(Protocol):
    """A backend whose sums over all ranks can be measured; a plug-in need not be one."""

    def reduction(self, options: Options) -> Reduction:
        """Of this rank of the layout in ``options``; joins the others."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one sum of ``bytes``, of each round."""

    bytes: int
    seconds: tuple[float, ...]


def measure(reduction: Reduction, clock: Clock, sizes: Sequence[int] = SIZES) -> list[Timing]:
    """Time sums of each size, in rounds that go through all sizes: a slow drift meets them alike."""
    works = {size: reduction.sums(size) for size in sizes}
    for work in works.values():
        _timed(work, 1, reduction, clock)  # the first use connects and allocates
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(_ROUNDS):
        for size, work in works.items():
            seconds[size].append(_timed(work, _number(size), reduction, clock))
    return [Timing(size, tuple(each)) for size, each in seconds.items()]


def _number(size: int) -> int:
    """How many make a window. Every rank must count the same, so it goes by size and not by its own clock."""
    return max(3, min(_MOST, int(_WINDOW_SECONDS / (1e-4 + size * 2e-9))))


def _timed(work: Callable[[], object], number: int, reduction: Reduction, clock: Clock) -> float:
    reduction.meet()
    start = clock()
    for _ in range(number):
        work()
    return (clock() - start) / number
