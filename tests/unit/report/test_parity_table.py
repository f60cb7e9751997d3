from __future__ import annotations

import math

import pytest

from trainmark.analysis.parity import Parity, SideParity, judge, pairs_of
from trainmark.record.checks import Check, CheckedPart, StepChecks
from trainmark.report.markdown import to_markdown
from trainmark.report.parity_table import parity_tables, shown_steps


def shown(*sides: SideParity, left_out: tuple[str, ...] = ()) -> str:
    return to_markdown(
        parity_tables(Parity("mnist-cnn", "mnist", "fp32", 1, sides, pairs_of(sides), left_out))
    )


def a_step(*checks: Check, step: int | None = 0, near_kinks: int = 0) -> StepChecks:
    return StepChecks(step, checks, near_kinks)


def wrong(part: CheckedPart, *names: str, error: float = 1e-3) -> StepChecks:
    return a_step(*(Check(part, name, error, 1e-6) for name in names))


FINE = a_step(Check("loss", "", 1e-7, 1e-6), Check("update", "dense1.kernel", 4.2e-7, 1e-6))
GOOD = judge("torch fast cpu", [FINE, FINE], losses=[2.0, 1.0])
SLIP = judge("wrong fast cpu", [FINE, wrong("update", "dense1.kernel", "dense1.bias")])


def test_a_side_that_agrees_is_one_line() -> None:
    text = shown(GOOD)
    assert "**PASS: 1 side computes the same as the reference.**" in text
    assert "mnist, fp32, seed 1: 2 steps, each from the reference's state" in text
    assert "| side | loss | update | verdict |" in text
    assert "| **torch fast cpu** | 0.1 | 0.42 | PASS |" in text
    assert "kink" not in text and "not checked" not in text


def test_a_mistake_is_reported_with_its_size_and_what_to_look_at() -> None:
    text = shown(GOOD, SLIP)
    assert "**FAIL: 1 of 2 sides does not compute the same as the reference.**" in text
    assert "| **wrong fast cpu** | 0.1 | 1e+03 | FAIL |" in text
    assert (
        "- wrong fast cpu: wrong update: dense1.kernel, dense1.bias in step 0 (off by "
        "1.0e-03, allowed" in text
    )
    assert "1.0e-06). Look at the learning rate, weight decay" in text


def test_of_many_names_three_are_enough() -> None:
    assert "wrong gradient: a, b, c and 2 more in step 0" in shown(
        judge("x", [wrong("gradient", *"abcde")])
    )


@pytest.mark.parametrize(("part", "name"), [("loss", ""), ("input", "input")])
def test_the_name_of_a_part_is_not_repeated(part: CheckedPart, name: str) -> None:
    assert f"x: wrong {part} in step 0 (" in shown(judge("x", [wrong(part, name)]))


def test_an_infinite_difference_in_batch_order_is_shown() -> None:
    text = shown(judge("x", [a_step(Check("order", "step 3", math.inf, 0.0), step=None)]))
    assert "x: wrong batch order: step 3. Look at" in text
    assert "| side | batch order | verdict |" in text and "| **x** | ∞ | FAIL |" in text
    assert ": 0 steps" in text


def test_a_side_of_which_only_a_part_was_checked() -> None:
    text = shown(GOOD, judge("old fast cpu", [a_step(Check("loss", "", 1e-7, 1e-6))]))
    assert (
        "**PASS: 2 sides compute the same as the reference, as far as checked; see the notes.**"
        in text
    )


def test_a_side_that_ended_early() -> None:
    text = shown(GOOD, judge("dead fast cpu", [], trouble="failed, out of memory"))
    assert "| **dead fast cpu** | - | - | FAIL |" in text
    assert "- dead fast cpu: failed, out of memory." in text


def test_notes_name_unchecked_parts_kinks_and_omitted_sides() -> None:
    side = judge(
        "x",
        [a_step(near_kinks=1), a_step(near_kinks=2)],
        ["distortions are not checked", "it is odd"],
    )
    text = shown(side, GOOD, left_out=("left out: numpy on cuda:0",))
    assert "- x: distortions are not checked; it is odd." in text
    assert "- 3 units within rounding of a kink" in text
    assert "- left out: numpy on cuda:0" in text


def test_losses_of_free_trainings_may_differ_in_length() -> None:
    text = shown(GOOD, judge("y", [FINE], losses=[2.0]), judge("z", [FINE]))
    assert "### Losses of a free training" in text
    assert "| step | torch fast cpu | y |" in text and "| 1 | 1 | - |" in text
    assert "Not judged" in text
    assert "free training" not in shown(SLIP)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (1, [0]),
        (2, [0, 1]),
        (4, [0, 1, 2, 3]),
        (10, [0, 1, 2, 4, 8, 9]),
        (100, [0, 1, 2, 4, 8, 16, 32, 64, 99]),
    ],
)
def test_steps_are_shown_ever_more_sparsely_up_to_the_last(steps: int, expected: list[int]) -> None:
    assert shown_steps(steps) == expected
