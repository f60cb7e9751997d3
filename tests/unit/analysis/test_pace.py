"""A side that changes its pace within a run, relative to the other."""

from __future__ import annotations

import random

import pytest

from trainmark.analysis.pace import changes_pace


def rounds(
    number: int, blocks: int, noise: float, steps: dict[int, float], seed: int = 1
) -> list[list[float]]:
    """Log ratios; ``steps`` are added from a block on."""
    rng = random.Random(seed)
    return [
        [
            rng.gauss(0.0, noise) + sum(size for place, size in steps.items() if block >= place)
            for block in range(blocks)
        ]
        for _ in range(number)
    ]


@pytest.mark.parametrize(("place", "size"), [(1, 0.1), (1, -0.1), (5, 0.1), (7, 0.12)])
def test_a_step_at_one_place_of_every_round_is_found(place: int, size: float) -> None:
    assert changes_pace(rounds(3, 8, 0.02, {place: size}))


def test_noise_alone_is_hardly_ever_called_a_step() -> None:
    found = sum(changes_pace(rounds(3, 8, 0.05, {}, seed)) for seed in range(100))
    assert found <= 4, "0.5 in 100 are expected"


def test_steps_at_different_places_are_noise() -> None:
    assert not changes_pace(
        [[0.0, 0.0, 0.1, 0.1], [0.1, 0.0, 0.0, 0.1], [0.1, 0.1, 0.0, 0.0], [0.0, 0.1, 0.1, 0.0]]
    )


def test_a_tiny_change_or_too_few_blocks_are_no_change_of_pace() -> None:
    assert not changes_pace(rounds(20, 8, 0.0001, {4: 0.02}))
    assert not changes_pace([[0.0, 0.5, 0.5]] * 10)
    assert not changes_pace([])
