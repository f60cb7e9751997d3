"""A growth is found where steps take longer and longer, and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from trainmark.inject.step_times import StepTimes
from trainmark.record.growth import FEWEST_STEPS, Growth, growing_line, growth


def parts(
    seconds: Callable[[int], float],
    steps: int = 1000,
    amount: Callable[[int], float] = lambda _: 32.0,
    noise: float = 0.1,
    seed: int = 0,
) -> list[list[float]]:
    """Return the parts of a training on a machine that is shared: a fifth of its steps take far
    longer, the others up to ``noise`` of their duration longer."""
    chance = random.Random(seed)
    times = StepTimes()
    for step in range(1, steps + 1):
        slower = 1 + noise * chance.random() + (chance.random() < 0.2) * chance.random()
        times.add(step, seconds(step) * slower, amount(step))
    return times.parts()


@pytest.mark.parametrize("each", [0.001, 0.002, 0.005, 0.01, 0.05])
@pytest.mark.parametrize("steps", [FEWEST_STEPS + 30, 1000, 5000])
def test_a_linear_growth_is_found(each: float, steps: int) -> None:
    for seed in range(5):
        found = growth(parts(lambda step: 0.004 * (1 + each * step), steps, seed=seed))
        assert found is not None
        assert found.each_seconds == pytest.approx(0.004 * each, rel=0.2)
        assert found.seconds_at(steps) == pytest.approx(0.004 * (1 + each * steps), rel=0.2)


@pytest.mark.parametrize("begins", [20, 60])
def test_a_growth_that_begins_later_is_found(begins: int) -> None:
    for seed in range(5):
        found = growth(parts(lambda step: 0.006 + 0.003 * max(step - begins, 0), 320, seed=seed))
        assert found is not None
        assert found.each_seconds == pytest.approx(0.003, rel=0.2)
        assert found.first_seconds > 0


NO_GROWTH: dict[str, Callable[[int], float]] = {
    "steady": lambda _: 0.004,
    "warms up": lambda step: 0.004 + 0.02 * (step < 30),
    "another program starts": lambda step: 0.004 + 0.003 * (step > 500),
    "the clock falls early": lambda step: 0.004 + 0.001 * (step > 100),
    "becomes faster": lambda step: 0.006 - 0.002 * step / 1000,
    "epochs": lambda step: 0.004 + 0.01 * (step % 100 == 0),
    "two kinds of steps": lambda step: 0.004 + 0.004 * (step % 2),
    "two stairs": lambda step: 0.004 + 0.002 * (step // 350),
    "four stairs": lambda step: 0.004 + 0.001 * (step // 200),
    "for a while": lambda step: 0.004 + 0.004 * (300 < step < 600),
}


@pytest.mark.parametrize("name", NO_GROWTH)
def test_what_is_no_growth_is_not_called_one(name: str) -> None:
    for seed in range(10):
        assert growth(parts(NO_GROWTH[name], seed=seed)) is None


def test_longer_sequences_are_no_growth() -> None:
    grows = parts(lambda step: 0.004 * (1 + step / 500), amount=lambda step: 100 + step / 5)
    assert growth(grows) is None


def test_a_few_steps_show_nothing() -> None:
    assert growth(parts(lambda step: 0.004 * step, FEWEST_STEPS - 1)) is None
    assert growth([]) is None


def test_odd_parts_show_nothing() -> None:
    """A record may come from anywhere."""
    grows = parts(lambda step: 0.004 * step)
    assert growth([*grows, [1e6]]) is None
    assert growth([*grows, grows[-1]]) is None


def test_the_parts_of_a_long_training_are_few() -> None:
    times = StepTimes()
    for step in range(1, 100_001):
        times.add(step, 1.0 + (step % 7), 1.0)
    found = times.parts()
    assert 40 <= len(found) <= 96
    assert {seconds for _, seconds, _ in found} == {1.0}
    assert [step for step, _, _ in found] == sorted(step for step, _, _ in found)


GROWS = Growth(first_step=0, last_step=600, first_seconds=0.01, each_seconds=0.0001)
"""A step takes 20 ms in the middle of the first third, and 60 ms in that of the last one."""


@pytest.mark.parametrize(
    ("early", "late", "line"),
    [
        ({"train.py:1": 1.0}, {"train.py:1": 0.4, "train.py:9": 0.6}, "train.py:9"),
        (
            {"train.py:1": 0.5, "train.py:9": 0.5},
            {"train.py:9": 0.9, "train.py:1": 0.1},
            "train.py:9",
        ),
        (
            {"train.py:1": 0.5, "train.py:9": 0.5},
            {"train.py:1": 0.5, "train.py:9": 0.5},
            None,
        ),
        ({}, {f"train.py:{line}": 0.1 for line in range(10)}, None),
        ({}, {}, None),
    ],
    ids=["a new line", "a line that grows", "all lines alike", "many lines", "no samples"],
)
def test_the_line_that_grows_is_named(
    early: dict[str, float], late: dict[str, float], line: str | None
) -> None:
    assert growing_line(GROWS, early, late) == line
