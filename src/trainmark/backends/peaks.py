"""Peak speed of a device with a framework, measured with only matrix products and copies.

A backend provides the work; this module runs and times it in the same way for all. The highest rate
counts, since noise only ever makes a device look slower.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from trainmark.backends.base import Device, Options
from trainmark.workload.products import Convolution, Product

METHOD = 1
"""Increased when the method changes, so that older rates are no longer used."""

SIZES = (1024, 2048, 4096, 8192, 16384)
_WINDOW_SECONDS = 0.05  # this is long compared with a synchronisation
_SECONDS_A_SIZE = 0.6
_LONGEST_SECONDS = 0.5  # no larger product is tried after one that takes this long
_SHARE_OF_MEMORY = 1 / 16
_CPU_BYTES = 2**28
"""Bytes of a copied array if the device's memory is unknown, as on a CPU."""
_LARGEST_COPY_BYTES = 2**31
"""Most bytes of a copied array; far more than any cache holds."""

Clock = Callable[[], float]


def _wait_for_nothing() -> None:
    return None


@dataclass(frozen=True)
class QueuedWork:
    """Work to be repeated.

    Args:
        queue: do it once more, or queue it on the device.
        wait: return when everything queued is done.
    """

    queue: Callable[[], object]
    wait: Callable[[], object] = _wait_for_nothing


class PeakKernels(Protocol):
    """A device that is ready for such work in one precision."""

    def products(self, asked: Sequence[Product]) -> QueuedWork:
        """Return consecutive matrix products, computed as in a training step.

        They are one program if the framework compiles programs.
        """

    def copy(self, size: int) -> QueuedWork:
        """Return a copy of ``size`` bytes within the device's memory."""


@runtime_checkable
class Convolving(Protocol):
    """Peak kernels of a framework with native convolutions.

    For others, convolutions are matrix products.
    """

    def convolutions(self, asked: Sequence[Convolution]) -> QueuedWork:
        """Return convolutions and their gradients, layer by layer, as in a training step."""


@runtime_checkable
class MeasuresPeaks(Protocol):
    """A backend whose devices can be measured; optional for plug-ins."""

    def peak_kernels(self, options: Options) -> PeakKernels:
        """Return the device of ``options``, with its precision and threads."""


@dataclass(frozen=True)
class DevicePeaks:
    """The highest measured rates.

    Args:
        matmul_flops_per_second: rate of products; one multiply-add is two operations.
        matmul_size: rows and columns of the fastest product.
        copy_bytes_per_second: rate of copies; bytes read and bytes written both count.
        copied_bytes: size of one copy.
    """

    matmul_flops_per_second: float
    matmul_size: int
    copy_bytes_per_second: float
    copied_bytes: int


def measure(kernels: PeakKernels, device: Device, clock: Clock) -> DevicePeaks:
    """Measure the highest rates, in a second or two."""
    rate, size = max(_products(kernels, device, clock))
    memory = device.memory_bytes
    copied = (
        _CPU_BYTES if memory is None else min(_LARGEST_COPY_BYTES, int(memory * _SHARE_OF_MEMORY))
    )
    return DevicePeaks(rate, size, 2 * copied / best_seconds(kernels.copy(copied), clock), copied)


def best_seconds(work: QueuedWork, clock: Clock, budget: float = _SECONDS_A_SIZE) -> float:
    """Return the seconds per repetition of ``work`` in the fastest of several windows."""
    timed(work, 1, clock)  # the first use: compiles, allocates
    number = max(1, round(_WINDOW_SECONDS / max(timed(work, 1, clock), 1e-7)))
    end = clock() + budget
    best = timed(work, number, clock)
    while clock() < end:
        best = min(best, timed(work, number, clock))
    return best


def _products(kernels: PeakKernels, device: Device, clock: Clock) -> Iterator[tuple[float, int]]:
    """Yield rate and size, from small to large, as long as they fit and don't take too long."""
    seconds = 0.0
    for before, size in itertools.pairwise((0, *SIZES)):
        matrices = 3 * 8 * size**2
        too_large = (
            device.memory_bytes is not None and matrices > device.memory_bytes * _SHARE_OF_MEMORY
        )
        too_slow = before and seconds * (size / before) ** 3 > _LONGEST_SECONDS
        if before and (too_large or too_slow):
            return
        seconds = best_seconds(kernels.products([Product(size, size, size)]), clock)
        yield 2 * size**3 / seconds, size


def timed(work: QueuedWork, number: int, clock: Clock) -> float:
    """Return the seconds per repetition when ``number`` repetitions are queued together."""
    start = clock()
    for _ in range(number):
        work.queue()
    work.wait()
    return (clock() - start) / number
