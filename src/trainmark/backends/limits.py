"""How fast a device can be with a framework: matrix products and copies, nothing else to do.

A backend gives the work; what is done with it, and how it is timed, is the same for all and stands here. The highest
rate counts: noise only ever makes a device look slower.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from trainmark.backends.base import Device, Options
from trainmark.workload.products import Convolution, Product

METHOD = 1
"""Goes up when rates are no longer found in the same way, so that older ones are not used any more."""

SIZES = (1024, 2048, 4096, 8192, 16384)
_WINDOW_SECONDS = 0.05  # long against a synchronisation
_SECONDS_A_SIZE = 0.6
_LONGEST_SECONDS = 0.5  # one product beyond this is not tried
_SHARE_OF_MEMORY = 1 / 16
_CPU_BYTES, _LARGEST_COPY_BYTES = 2**28, 2**31  # far more than any cache holds

Clock = Callable[[], float]


@dataclass(frozen=True)
class QueuedWork:
    """Something to be done over and over.

    Args:
        queue: do it once more, or ask the device to.
        wait: return when all that was queued is done.
    """

    queue: Callable[[], object]
    wait: Callable[[], object] = lambda: None


class DeviceLimits(Protocol):
    """A device, ready for such work in one precision."""

    def products(self, asked: Sequence[Product]) -> QueuedWork:
        """Matrix products, one after the other, each computed as a training step computes its own; all in one program
        where the framework compiles programs."""

    def copy(self, size: int) -> QueuedWork:
        """A copy of ``size`` bytes from one place in the device's memory to another."""


@runtime_checkable
class Convolving(Protocol):
    """DeviceLimits of a framework with its own convolutions; for others they are matrix products."""

    def convolutions(self, asked: Sequence[Convolution]) -> QueuedWork:
        """Convolutions and their gradients, one layer after the other, as a training step computes its own."""


@runtime_checkable
class Limited(Protocol):
    """A backend whose limits can be measured; a plug-in need not be."""

    def limits(self, options: Options) -> DeviceLimits:
        """The device of ``options``, with its precision and threads."""


@dataclass(frozen=True)
class DevicePeaks:
    """What was reached.

    Args:
        matmul_flops_per_second: one multiply-add is two operations.
        matmul_size: rows and columns of the product that was fastest.
        copy_bytes_per_second: bytes read and bytes written both count.
        copied_bytes: of one copy.
    """

    matmul_flops_per_second: float
    matmul_size: int
    copy_bytes_per_second: float
    copied_bytes: int


def measure(limits: DeviceLimits, device: Device, clock: Clock) -> DevicePeaks:
    """Take the highest rates of a second or two."""
    rate, size = max(_products(limits, device, clock))
    memory = device.memory_bytes
    copied = _CPU_BYTES if memory is None else min(_LARGEST_COPY_BYTES, int(memory * _SHARE_OF_MEMORY))
    return DevicePeaks(rate, size, 2 * copied / best_seconds(limits.copy(copied), clock), copied)


def best_seconds(work: QueuedWork, clock: Clock, budget: float = _SECONDS_A_SIZE) -> float:
    """Seconds of one piece of ``work`` in the fastest of several windows."""
    _timed(work, 1, clock)  # the first use: compiles, allocates
    number = max(1, round(_WINDOW_SECONDS / max(_timed(work, 1, clock), 1e-7)))
    end = clock() + budget
    best = _timed(work, number, clock)
    while clock() < end:
        best = min(best, _timed(work, number, clock))
    return best


def _products(limits: DeviceLimits, device: Device, clock: Clock) -> Iterator[tuple[float, int]]:
    """Rate and size, from small to large, as long as they fit and don't take too long."""
    seconds = 0.0
    for before, size in itertools.pairwise((0, *SIZES)):
        matrices = 3 * 8 * size**2
        too_large = device.memory_bytes is not None and matrices > device.memory_bytes * _SHARE_OF_MEMORY
        too_slow = before and seconds * (size / before) ** 3 > _LONGEST_SECONDS
        if before and (too_large or too_slow):
            return
        seconds = best_seconds(limits.products([Product(size, size, size)]), clock)
        yield 2 * size**3 / seconds, size


def _timed(work: QueuedWork, number: int, clock: Clock) -> float:
    """Seconds of one of ``number`` pieces that are queued together."""
    start = clock()
    for _ in range(number):
        work.queue()
    work.wait()
    return (clock() - start) / number
