from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from trainmark.analysis.parity import FLOOR_UNITS, MULTIPLE, Curve, Rounding, judge, judge_all, relative_difference

FP32 = Rounding(2.0**-23)
FLOOR = FLOOR_UNITS * FP32.unit
STEPS = 10


def curve(title: str, moved: float = 0.0, nudged: tuple[float, ...] = (0.0,), steps: int = STEPS) -> Curve:
    """A falling loss, all of it moved by a share; and nudged runs, each moved by another share from it."""
    losses = 2.0 * np.exp(-np.arange(steps) / 20) * (1 + moved)
    return Curve(title, losses.tolist(), [(losses * (1 + share)).tolist() for share in nudged])


def test_equal_curves_pass_with_the_smallest_tolerance() -> None:
    pair = judge(curve("a"), curve("b"), FP32)
    assert pair.passed and pair.reason is None and pair.parts_at_step is None
    assert (pair.steps, pair.largest_difference, pair.tolerance) == (STEPS, 0.0, FLOOR)


@pytest.mark.parametrize(("moved", "passed"), [(0.99, True), (1.01, False)])
def test_without_movement_the_floor_decides(moved: float, passed: bool) -> None:
    assert judge(curve("a"), curve("b", moved=moved * FLOOR), FP32).passed is passed


@pytest.mark.parametrize(("moved", "passed"), [(0.99, True), (1.01, False)])
@pytest.mark.parametrize("mover", ["a", "b"])
def test_a_multiple_of_the_larger_movement_of_either_side_decides(moved: float, passed: bool, mover: str) -> None:
    a, b = (curve(title, nudged=(1e-4, -1e-3) if title == mover else (0.0, 0.0)) for title in "ab")
    other = replace(b, losses=[loss * (1 + moved * MULTIPLE * 1e-3) for loss in b.losses])
    other = replace(other, nudged=[[loss * (1 - 1e-3) for loss in other.losses]] if mover == "b" else [other.losses])
    assert judge(a, other, FP32).passed is passed


def test_what_rounding_does_later_excuses_nothing_before() -> None:
    late = curve("a")
    late = replace(late, nudged=[[*late.losses[:5], *(2 * loss for loss in late.losses[5:])]])
    pair = judge(late, curve("b", moved=1e-3), FP32)
    assert (pair.passed, pair.parts_at_step, pair.tolerance) == (False, 0, FLOOR)
    assert pair.reason == "they differ from step 0 on"


def test_the_tolerance_never_shrinks() -> None:
    early = curve("a")
    early = replace(early, nudged=[[early.losses[0], early.losses[1] * 1.001, *early.losses[2:]]])
    pair = judge(early, curve("b", moved=0.0), FP32)
    assert pair.tolerances[0] == FLOOR
    assert pair.tolerances[1:] == (pair.tolerances[1],) * (STEPS - 1) and pair.tolerances[1] > 1e-3


@pytest.mark.parametrize("moved", [0.0, 3e-7, 1e-6, 1e-2])
@pytest.mark.parametrize("nudged", [0.0, 1e-8, 1e-4])
def test_the_one_tolerance_that_is_shown_agrees_with_the_verdict(moved: float, nudged: float) -> None:
    pair = judge(curve("a", nudged=(nudged,)), curve("b", moved=moved), FP32)
    assert pair.largest_difference is not None and pair.tolerance is not None
    assert pair.passed == (pair.largest_difference <= pair.tolerance)


def test_float64_takes_its_share_of_a_float32_nudge() -> None:
    fp64 = Rounding(2.0**-52, share=2.0**-29)
    a = curve("a", nudged=(1e-4,))
    assert judge(a, curve("b", moved=1e-14), fp64).passed
    assert not judge(a, curve("b", moved=1e-11), fp64).passed
    assert judge(a, curve("b", moved=1e-11), FP32).passed


def cut(side: Curve, at: int) -> Curve:
    """As a run leaves it whose loss is not finite at step ``at``."""
    losses = [*side.losses[:at], *[math.nan] * (STEPS - at)]
    return replace(side, losses=losses, trouble=f"diverged, loss is NaN at step {at}", diverged_at=at)


def test_a_loss_that_is_not_finite_on_both_sides_is_said_and_not_passed() -> None:
    pair = judge(cut(curve("a"), 4), cut(curve("b"), 4), FP32)
    assert (pair.passed, pair.steps, pair.parts_at_step, pair.largest_difference) == (False, 4, None, 0.0)
    assert pair.reason == "both reach a loss that is not finite at step 4 and agree until then"
    assert len(pair.losses_a) == STEPS, "what was measured is kept"


def test_two_that_diverge_after_they_part() -> None:
    pair = judge(cut(curve("a"), 4), cut(curve("b", moved=1e-3), 4), FP32)
    assert pair.reason == "they differ from step 0 on; both reach a loss that is not finite at step 4"


def test_one_side_that_diverges_is_named() -> None:
    pair = judge(curve("a"), cut(curve("b"), 4), FP32)
    assert (pair.passed, pair.steps, pair.reason) == (False, 4, "b: diverged, loss is NaN at step 4")


def test_a_side_without_a_single_loss() -> None:
    pair = judge(curve("a"), Curve("b", [], [[]], trouble="failed, out of memory"), FP32)
    assert (pair.passed, pair.steps, pair.tolerance, pair.largest_difference) == (False, 0, None, None)
    assert pair.reason == "b: failed, out of memory"


def test_every_two_sides_are_a_pair() -> None:
    pairs = judge_all([curve("a"), curve("b"), curve("c", moved=1e-3)], FP32)
    assert [(pair.a, pair.b, pair.passed) for pair in pairs] == [("a", "b", True), ("a", "c", False), ("b", "c", False)]


def test_relative_difference() -> None:
    assert relative_difference([0.0, 1.0, 2.0, -1.0], [0.0, 2.0, 1.0, 1.0]).tolist() == [0.0, 0.5, 0.5, 2.0]
