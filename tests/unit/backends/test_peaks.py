from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from trainmark.backends.base import Device
from trainmark.backends.peaks import DevicePeaks, QueuedWork, best_seconds, measure
from trainmark.workload.products import Product


@dataclass
class Slow:
    """A device that works off its queue while no one looks: a clock that jumps when it is waited
    for."""

    flops_per_second: float = 1e12
    bytes_per_second: float = 1e11
    first_use_seconds: float = 3.0
    now: float = 0.0
    queued: float = 0.0
    used: bool = False
    largest: int = 0

    def clock(self) -> float:
        self.now += 1e-6
        return self.now

    def work(self, seconds: float) -> QueuedWork:
        def queue() -> None:
            self.queued += seconds + (0 if self.used else self.first_use_seconds)
            self.used = True

        def wait() -> None:
            self.now += self.queued
            self.queued = 0.0

        return QueuedWork(queue, wait)

    def products(self, asked: Sequence[Product]) -> QueuedWork:
        self.largest = max(self.largest, *(product.rows for product in asked))
        return self.work(
            sum(2 * m * k * n * number for m, k, n, _, number in asked) / self.flops_per_second
        )

    def copy(self, size: int) -> QueuedWork:
        return self.work(2 * size / self.bytes_per_second)


CPU = Device("cpu", None, "cpu")
GPU = Device("cuda:0", None, "accelerator", 80 * 2**30)


@pytest.mark.parametrize("device", [CPU, GPU])
def test_peaks_are_the_rates_of_the_device_without_its_first_use(device: Device) -> None:
    slow = Slow()
    peaks = measure(slow, device, slow.clock)
    assert peaks.matmul_flops_per_second == pytest.approx(1e12, rel=0.02)
    assert peaks.copy_bytes_per_second == pytest.approx(1e11, rel=0.02)


def test_products_that_would_take_long_are_not_tried() -> None:
    slow = Slow(flops_per_second=1e10)
    measure(slow, CPU, slow.clock)
    assert slow.largest == 1024


def test_products_that_do_not_fit_are_not_tried() -> None:
    slow = Slow(flops_per_second=1e15)
    measure(slow, Device("cuda:0", None, "accelerator", 4 * 2**30), slow.clock)
    assert slow.largest == 2048


def test_the_fastest_size_counts() -> None:
    class Uneven(Slow):
        def products(self, asked: Sequence[Product]) -> QueuedWork:
            ((size, *_),) = asked
            return self.work(2 * size**3 / (self.flops_per_second if size == 2048 else 1e11))

    uneven = Uneven()
    assert measure(uneven, CPU, uneven.clock) == DevicePeaks(
        pytest.approx(1e12, rel=0.02), 2048, pytest.approx(1e11, rel=0.02), 2**28
    )


def test_the_fastest_window_counts() -> None:
    slow = Slow(first_use_seconds=0)
    durations = iter([0.1, 0.1, 0.1, 0.02, *[0.1] * 100])

    def wait() -> None:
        slow.now += next(durations)

    assert best_seconds(QueuedWork(lambda: None, wait), slow.clock) == pytest.approx(0.02, rel=0.01)
