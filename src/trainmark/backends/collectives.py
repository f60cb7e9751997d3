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

    def stretches(self, size: int, turns: int) -> tuple[Callable[[], object], Callable[[], object]]:
        """Two functions that take so many turns, the way the backend takes steps, and return when they are done.

        A turn is some milliseconds of what a training step is made of, over some megabytes of weights. In the second
        function there is a sum of ``size`` bytes over all ranks behind it, which waits for it, and the next turn for
        the sum.
        """

    def meet(self) -> None:
        """Return when every rank has called it."""


@runtime_checkable
class Collective(Protocol):
    """A backend whose sums over all ranks can be measured; a plug-in need not be one."""

    def reduction(self, options: Options, arrays: int) -> Reduction:
        """Of this rank of the layout in ``options``; joins the others. A network's gradients are so many ``arrays``."""


@dataclass(frozen=True)
class Timing:
    """Seconds that a sum of ``bytes`` adds, of each round."""

    bytes: int
    seconds: tuple[float, ...]


def measure(reduction: Reduction, clock: Clock, sizes: Sequence[int]) -> list[Timing]:
    """Time sums of each size, in rounds that go through all sizes: a slow drift meets them alike."""
    stretches = {size: reduction.stretches(size, _IN_A_ROW) for size in sizes}
    for pair in stretches.values():
        for stretch in pair:
            _timed(stretch, reduction, clock)  # the first use connects, compiles and allocates
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(_ROUNDS):
        for size, (without, summed) in stretches.items():
            apart = _timed(without, reduction, clock)
            seconds[size].append(_timed(summed, reduction, clock) - apart)
    return [Timing(size, tuple(each)) for size, each in seconds.items()]


def _timed(stretch: Callable[[], object], reduction: Reduction, clock: Clock) -> float:
    """Seconds of one of its turns."""
    reduction.meet()
    start = clock()
    stretch()
    reduction.meet()
    return (clock() - start) / _IN_A_ROW
