from __future__ import annotations

import math

import pytest

from trainmark.analysis.parity import SUSPECTS, judge, pairs_of
from trainmark.record.checks import PARTS, Check, CheckedPart, StepChecks

BOUND = 1e-6


def a_check(
    part: CheckedPart, share: float = 2.0, name: str = "dense1.kernel", factor: float | None = None
) -> Check:
    return Check(part, name, share * BOUND, BOUND, factor)


def in_steps(*steps: list[Check]) -> list[StepChecks]:
    return [StepChecks(number, tuple(checks), near_kinks=2) for number, checks in enumerate(steps)]


def test_a_side_within_every_bound_passes() -> None:
    steps = in_steps(
        [a_check(part, 0.1) for part in PARTS], [a_check("loss", 1.0), a_check("update", 0.05)]
    )
    side = judge("torch fast cpu", steps, ["distortions"], [2.0, 1.0])
    assert side.passed and side.mistake is None
    assert side.shares == pytest.approx(dict.fromkeys(PARTS, 0.1) | {"loss": 1.0})
    assert (side.near_kinks, side.notes, side.losses, side.steps) == (
        4,
        ("distortions",),
        (2.0, 1.0),
        tuple(steps),
    )


@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_named(part: CheckedPart) -> None:
    side = judge("a", in_steps([a_check(part)]))
    assert not side.passed and side.mistake is not None
    assert (side.mistake.part, side.mistake.suspects) == (part, SUSPECTS[part])


def test_the_earliest_wrong_part_is_named() -> None:
    everywhere = [a_check(part, share=10.0) for part in reversed(PARTS)]
    later = judge("a", in_steps([a_check("update")], everywhere)).mistake
    assert later is not None
    assert (later.part, later.step) == ("input", 1)


def test_a_mistake_has_the_first_wrong_step_and_the_worst_check() -> None:
    worst = a_check("update", 9.0, "dense2.bias")
    first = [
        a_check("update", 0.9, "fine"),
        *[a_check("update", 3.0, name) for name in ("b", "a", "b")],
    ]
    mistake = judge("a", in_steps([a_check("update", 0.9)], first, [worst])).mistake
    assert mistake is not None
    assert (mistake.step, mistake.names, mistake.check) == (1, ("b", "a"), worst)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("input", "the divisor of the pixels: the values are 1.01 times the reference's"),
        (
            "gradient",
            f"the scale: the values are 1.01 times the reference's; or {SUSPECTS['gradient']}",
        ),
        ("update", "the learning rate: the values are 1.01 times the reference's"),
        ("dropout", "the scale of dropout: the values are 1.01 times the reference's"),
        ("forward", SUSPECTS["forward"]),
    ],
)
def test_one_factor_of_everything_is_a_suspect(part: CheckedPart, said: str) -> None:
    checks = [a_check(part, factor=factor) for factor in (1.0101, 1.01, 1.0099)]
    mistake = judge("a", in_steps([*checks, a_check(part)])).mistake
    assert mistake is not None and mistake.suspects == said


@pytest.mark.parametrize(
    "factors", [(1.0, 1.0), (1.0 + 1e-7, 1.0 + 1e-7), (1.01, 1.02), (1.01, 0.99)]
)
def test_different_factors_and_those_that_round_to_1_are_none(factors: tuple[float, ...]) -> None:
    mistake = judge("a", in_steps([a_check("update", factor=factor) for factor in factors])).mistake
    assert mistake is not None and mistake.suspects == SUSPECTS["update"]


@pytest.mark.parametrize("part", ["update", "state"])
def test_only_biases_point_to_weight_decay(part: CheckedPart) -> None:
    biases = [a_check(part, name=f"momentum of dense{number}.bias") for number in (1, 2)]
    for checks, only in ((biases, True), ([*biases, a_check(part)], False)):
        mistake = judge("a", in_steps(checks)).mistake
        assert mistake is not None and mistake.suspects.startswith("weight decay of biases") is only


@pytest.mark.parametrize("error", [math.nan, math.inf])
def test_what_is_not_finite_is_a_mistake(error: float) -> None:
    side = judge("a", in_steps([Check("gradient", "dense1.kernel", error, BOUND)]))
    assert side.mistake is not None and side.mistake.part == "gradient"
    assert side.shares == {"gradient": math.inf}


@pytest.mark.parametrize(("error", "share"), [(0.0, 0.0), (1e-30, math.inf)])
def test_a_bound_of_0_allows_nothing(error: float, share: float) -> None:
    assert Check("forward", "relu1", error, 0.0).share == share


def test_a_side_that_ended_early_does_not_pass() -> None:
    side = judge("a", in_steps([a_check("loss", 0.1)]), trouble="failed, out of memory")
    assert (side.passed, side.mistake, side.trouble) == (False, None, "failed, out of memory")
    assert not judge("a", [], trouble="failed, out of memory").passed


def test_two_sides_agree_if_each_agrees_with_the_reference() -> None:
    good = judge("a", [])
    also_good = judge("b", [])
    bad = judge("c", in_steps([a_check("loss")]))
    pairs = [(pair.a, pair.b, pair.passed) for pair in pairs_of([good, also_good, bad])]
    assert pairs == [("a", "b", True), ("a", "c", False), ("b", "c", False)]
