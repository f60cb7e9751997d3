"""What a sum over all ranks adds to a step, by its size: measured on every rank alike, between pieces of computation.

A sum among nothing but sums is faster than one that a training waits for: its numbers are still in the cache, nobody
comes late, and on a CPU it takes no core away from anybody. And what is computed after it is slower, since its own
numbers have left the cache. On two cores here that was as much as the sum by itself.

A backend gives the sums; what is done with them, and how it is timed, is the same for all and stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from trainmark.backends.base import Options

_ROUNDS = 7
_IN_A_ROW = 12

Clock = Callable[[], float]


class Reduction(Protocol):
    """Sums over all ranks."""

    def sums(self, size: int) -> Callable[[], object]:
        """A function that sums ``size`` bytes of float32 over all ranks, and returns when the sum is there."""

    def compute(self) -> None:
        """A few milliseconds of what a training step is made of, over some megabytes of weights, on this rank alone;
        returns when it is done."""

    def meet(self) -> None:
        """Return when every rank has called it."""


@runtime_checkable
class Collective(Protocol):
    """A backend whose sums over all ranks can be measured; a plug-in need not be one."""

    def reduction(self, options: Options) -> Reduction:
        """Of this rank of the layout in ``options``; joins the others."""


@dataclass(frozen=True)
class Timing:
    """Seconds that a sum of ``bytes`` adds, of each round."""

    bytes: int
    seconds: tuple[float, ...]


def measure(reduction: Reduction, clock: Clock, sizes: Sequence[int]) -> list[Timing]:
    """Time sums of each size, in rounds that go through all sizes: a slow drift meets them alike."""
    works: dict[int, Callable[[], object]] = {size: reduction.sums(size) for size in sizes}
    for work in works.values():
        _timed(work, reduction, clock)  # the first use connects and allocates
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(_ROUNDS):
        without = _timed(lambda: None, reduction, clock)
        for size, work in works.items():
            seconds[size].append(_timed(work, reduction, clock) - without)
    return [Timing(size, tuple(each)) for size, each in seconds.items()]


def _timed(work: Callable[[], object], reduction: Reduction, clock: Clock) -> float:
    """Seconds of some computation with ``work`` behind it."""
    reduction.meet()
    start = clock()
    for _ in range(_IN_A_ROW):
        reduction.compute()
        work()
    reduction.meet()
    return (clock() - start) / _IN_A_ROW
