"""Decisions before a turn: numbers of threads, and whether a clock has dropped."""

from __future__ import annotations

import pytest

from trainmark.execute.parent.conversation import CLOCK_IS_UP, GpuClocks, candidates


@pytest.mark.parametrize(
    ("cores", "numbers"),
    [(1, (1,)), (2, (1, 2)), (6, (1, 2, 4, 6)), (16, (1, 2, 4, 8, 16)), (24, (1, 2, 4, 8, 16, 24))],
)
def test_numbers_of_threads_double_up_to_all_cores(cores: int, numbers: tuple[int, ...]) -> None:
    assert candidates(cores) == numbers


def test_a_clock_is_unknown_until_its_gpu_has_computed() -> None:
    clocks = GpuClocks()
    clocks.saw(1, 1.98e9)
    assert clocks.is_down(0, 3.45e8) is None


def test_a_clock_is_down_well_below_its_highest() -> None:
    clocks = GpuClocks()
    for hertz in (1.7e9, 2.0e9, 1.8e9):
        clocks.saw(0, hertz)
    assert clocks.is_down(0, 2.0e9 * CLOCK_IS_UP * 0.99)
    assert clocks.is_down(0, 2.0e9 * CLOCK_IS_UP * 1.01) is False
