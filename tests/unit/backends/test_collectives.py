"""How sums are timed: with a clock that only work moves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trainmark.backends import collectives


class Fake:
    """Sums that take 2 µs and 1 ns a byte, behind a computation of 3 ms; the first ones of a size take a second."""

    def __init__(self) -> None:
        self.now = 0.0
        self.met = 0
        self.known: set[tuple[int, bool]] = set()

    def stretches(self, size: int, turns: int) -> tuple[Callable[[], object], Callable[[], object]]:
        def take(summed: bool) -> None:
            self.now += turns * (3e-3 + (2e-6 + 1e-9 * size if summed else 0.0))
            self.now += 0.0 if (size, summed) in self.known else 1.0
            self.known.add((size, summed))

        return lambda: take(False), lambda: take(True)

    def meet(self) -> None:
        self.met += 1


def test_what_a_sum_adds_is_told_without_the_computation_and_the_first_use() -> None:
    fake = Fake()
    timings = collectives.measure(fake, lambda: fake.now, (4, 1000, 10**6))
    assert [timing.bytes for timing in timings] == [4, 1000, 10**6]
    for timing in timings:
        assert len(timing.seconds) == 7
        assert timing.seconds == pytest.approx([2e-6 + 1e-9 * timing.bytes] * 7, rel=1e-6)


def test_every_stretch_begins_and_ends_together() -> None:
    fake = Fake()
    collectives.measure(fake, lambda: fake.now, (4,))
    assert fake.met == 2 * (2 + 7 * 2)
