"""Where one device overtakes another."""

from __future__ import annotations

import pytest

from trainmark.analysis.crossing import crossing

CPU = {size: 1e-5 * size for size in (4, 16, 64, 256, 1024)}


def launching(seconds: float, faster: float) -> dict[int, float]:
    """A device that needs so long to begin a step, and is then this many times faster than the
    CPU."""
    return {size: max(seconds, took / faster) for size, took in CPU.items()}


def test_a_slow_start_pays_off_at_the_batch_that_takes_as_long() -> None:
    found = crossing(CPU, launching(1e-3, 50))
    assert found.batch == pytest.approx(100, rel=0.01)
    assert found.faster


def test_a_device_that_is_always_faster_has_no_crossing() -> None:
    found = crossing(CPU, {size: took / 3 for size, took in CPU.items()})
    assert (found.batch, found.faster) == (None, True)


def test_a_device_that_is_never_faster_has_no_crossing() -> None:
    found = crossing(CPU, launching(1.0, 1))
    assert (found.batch, found.faster) == (None, False)


def test_of_several_crossings_the_last_one_counts() -> None:
    cpu = {4: 1.0, 16: 1.0, 64: 1.0, 256: 1.0}
    assert crossing(cpu, {4: 0.9, 16: 1.1, 64: 1.1, 256: 0.5}).batch == pytest.approx(72, rel=0.2)


def test_sizes_that_only_one_of_them_has_are_left_out() -> None:
    assert set(crossing(CPU, {64: 1e-3, 4096: 1.0}).seconds) == {64}
