"""The smallest difference by which equal sides can be distinguished."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from tests.records import a_record
from tests.unit.analysis.test_slices import ABBA, BAAB, slices
from trainmark.analysis.noise import Noise, noise_of
from trainmark.record.record import Record


def sides(
    rounds: Sequence[Sequence[float]], others: float = 0.0
) -> tuple[list[Record], list[Record]]:
    """Two sides whose blocks have these log ratios, four a round."""
    one = []
    other = []
    for number, ratios in enumerate(rounds):
        orders = [(ABBA, BAAB)[block % 2] for block in range(len(ratios))]
        slow = [math.exp(ratio) for ratio in ratios for _ in range(2)]
        for found, label, paces, side in ((one, "A", slow, 0), (other, "B", [1.0] * len(slow), 1)):
            made = slices(paces, [order[side] for order in orders], [others] * len(ratios))
            found.append(a_record(python=label, round=number, slices=made))
    return one, other


def drawn(rounds: int, processes: float, blocks: float, seed: int = 1) -> list[list[float]]:
    chance = random.Random(seed)
    return [
        [shift + chance.gauss(0, blocks) for _ in range(4)]
        for shift in (chance.gauss(0, processes) for _ in range(rounds))
    ]


def noise(rounds: Sequence[Sequence[float]], seconds: float = 120.0, others: float = 0.0) -> Noise:
    found = noise_of(*sides(rounds, others), seconds, 0.03)
    assert found is not None
    return found


def test_noise_between_processes_and_between_blocks() -> None:
    found = noise(drawn(400, processes=0.05, blocks=0.02))
    assert found.between_processes == pytest.approx(0.05, rel=0.15)
    assert found.between_blocks == pytest.approx(0.02, rel=0.15)
    assert noise(drawn(2, 0.0, 0.0), others=0.02).others == pytest.approx(0.02)
    within = noise(drawn(400, processes=0.0, blocks=0.04))
    assert within.between_processes is not None
    assert within.between_processes < 0.01


def test_more_time_finds_smaller_differences() -> None:
    found = noise(drawn(12, processes=0.03, blocks=0.01), seconds=120.0)
    minute, ten, hour = (each.difference for each in found.smallest)
    assert minute is not None
    assert ten is not None
    assert hour is not None
    assert minute > ten > hour > 0
    assert ten / hour == pytest.approx(math.sqrt(6), rel=0.1)


def test_the_smallest_difference_is_found_in_four_of_five_tries() -> None:
    seconds = 60.0
    rounds = 6  # ten seconds a round, so a minute has six
    spread = noise(drawn(500, 0.03, 0.0), seconds=5_000.0).smallest[0].difference
    assert spread is not None
    shift = math.log1p(spread)
    found = 0
    for seed in range(60):
        shifted = [[ratio + shift for ratio in ratios] for ratios in drawn(rounds, 0.03, 0.0, seed)]
        found += noise(shifted, seconds).verdict == "faster"
    assert 38 <= found <= 57


def test_with_too_few_undisturbed_rounds_nothing_is_claimed() -> None:
    for found in (noise(drawn(2, 0.03, 0.01)), noise(drawn(6, 0.03, 0.01), others=0.5)):
        assert {each.difference for each in found.smallest} == {None}
        assert found.verdict == "unclear"


def test_sides_without_a_common_slice() -> None:
    assert noise_of([a_record()], [a_record()], 10.0, 0.03) is None


def test_a_minute_that_others_disturbed_is_withheld() -> None:
    assert noise(drawn(6, 0.03, 0.01), others=0.5).withheld
    assert not noise(drawn(6, 0.03, 0.01)).withheld
