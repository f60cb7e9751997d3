"""A growth is found where steps take more and more time or memory, and nowhere else."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from trainmark.inject.step_times import StepTimes
from trainmark.record.growth import (
    FEWEST_STEPS,
    Growth,
    growing_line,
    growth,
    is_growing,
    memory_growth,
    memory_growth_of,
)
from trainmark.record.observed import Observed


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
        assert found.each == pytest.approx(0.004 * each, rel=0.2)
        assert found.at(steps) == pytest.approx(0.004 * (1 + each * steps), rel=0.2)


@pytest.mark.parametrize("begins", [20, 60])
def test_a_growth_that_begins_later_is_found(begins: int) -> None:
    for seed in range(5):
        found = growth(parts(lambda step: 0.006 + 0.003 * max(step - begins, 0), 320, seed=seed))
        assert found is not None
        assert found.each == pytest.approx(0.003, rel=0.2)
        assert found.first > 0


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


GROWS = Growth(first_step=0, last_step=600, first=0.01, each=0.0001)
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


MIB = float(1 << 20)


def readings(size: Callable[[int], float], steps: int = 1000) -> list[tuple[float, float]]:
    """Return the memory at every tenth step, which varies by a few MiB."""
    chance = random.Random(0)
    return [
        (float(step), size(step) + 4 * MIB * chance.random()) for step in range(1, steps + 1, 10)
    ]


@pytest.mark.parametrize("each", [0.05, 0.5, 20.0])
def test_a_memory_that_grows_is_found(each: float) -> None:
    found = memory_growth(readings(lambda step: (300 + each * step) * MIB))
    assert found is not None
    assert found.each == pytest.approx(each * MIB, rel=0.1)
    assert found.at(10_000) == pytest.approx((300 + each * 10_000) * MIB, rel=0.1)


def test_a_memory_that_grows_is_found_in_steps_that_take_longer_and_longer() -> None:
    steps = [1500 * (number / 96) ** 0.5 for number in range(1, 97)]  # at equal times
    found = memory_growth([(step, (300 + 0.5 * step) * MIB) for step in steps])
    assert found is not None
    assert found.each == pytest.approx(0.5 * MIB)


@pytest.mark.parametrize(
    "size",
    [
        lambda _: 300.0,
        lambda step: 300.0 + 0.02 * step,
        lambda step: 300.0 + 200 * (step > 40),
        lambda step: 300.0 + min(step, 300),
        lambda step: 300.0 + 100 * (step // 250),
        lambda step: 300.0 + step % 200,
        lambda step: 300.0 - 0.1 * step,
        lambda step: 300.0 + 600 * (1 - math.exp(-step / 400)),
        lambda step: 300.0 + 100 * math.log(step),
        lambda step: 300.0 + 20 * math.sqrt(step),
    ],
    ids=[
        "steady",
        "little",
        "warm-up",
        "a cache that fills",
        "stairs",
        "epochs",
        "less",
        "saturates",
        "logarithm",
        "root",
    ],
)
def test_other_memory_does_not_grow(size: Callable[[int], float]) -> None:
    assert memory_growth(readings(lambda step: size(step) * MIB)) is None


def test_the_memory_of_a_few_steps_shows_nothing() -> None:
    assert memory_growth(readings(lambda step: step * 10 * MIB, 100)) is None
    assert memory_growth([]) is None
    odd = Observed("torch", (), 1000, 10.0, step_memory=((1.0,),) * 50)
    assert not memory_growth_of(odd), "a record may come from anywhere"


def test_no_growth_for_unknown_memory_or_several_trainings() -> None:
    grows = [(step, size, None) for step, size in readings(lambda step: (300 + step) * MIB)]
    seen = Observed("torch", (), 1000, 10.0, step_memory=tuple(grows))
    assert set(memory_growth_of(seen)) == {"process"}
    on_device = tuple((step, None, size) for step, size, _ in grows)
    assert set(memory_growth_of(replace(seen, step_memory=on_device))) == {"device"}
    assert is_growing(seen)
    several = replace(seen, training_starts=(0, 500))
    assert not memory_growth_of(several)
    assert not is_growing(several)
