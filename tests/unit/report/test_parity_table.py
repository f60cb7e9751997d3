from __future__ import annotations

import pytest

from trainmark.analysis.parity import Curve, Pair, Parity, Rounding, judge
from trainmark.report.markdown import to_markdown
from trainmark.report.parity_table import parity_tables, steps_to_show


def shown(*pairs: Pair) -> str:
    return to_markdown(parity_tables(Parity("mnist-cnn", "mnist", "fp32", 1, 3, 3, 3.0, pairs)))


def side(title: str, *losses: float) -> Curve:
    return Curve(title, losses, [losses])


FP32 = Rounding(2.0**-23)
GOOD = judge(side("torch fast cpu", 2.0, 1.0, 0.5), side("numpy idiomatic cpu", 2.0, 1.0, 0.5), FP32)
PARTS = judge(side("torch fast cpu", 2.0, 1.0, 0.5), side("wrong fast cpu", 2.0, 1.001, 0.6), FP32)
BROKEN = judge(side("torch fast cpu", 2.0), Curve("wrong fast cpu", [], [[]], "failed, out of memory"), FP32)


def test_a_pair_that_agrees_is_one_line() -> None:
    text = shown(GOOD)
    assert "| **torch fast cpu** | **numpy idiomatic cpu** | 3 | 0 | 9.5e-07 | - | PASS |" in text
    assert "3 times the change" in text and "loss of a" not in text


def test_a_pair_that_parts_shows_where_and_how_far() -> None:
    text = shown(GOOD, PARTS)
    assert "| 1 | FAIL |" in text
    assert "torch fast cpu and wrong fast cpu: they differ from step 1 on." in text
    assert "### torch fast cpu against wrong fast cpu" in text
    assert "| 1 | 1 | 1.001 | 1.0e-03 | 9.5e-07 | 1,048× |" in text


def test_a_side_that_failed_has_no_curve() -> None:
    text = shown(BROKEN)
    assert "wrong fast cpu: failed, out of memory." in text and "loss of a" not in text


def test_a_wide_tolerance_is_said() -> None:
    chaotic = Curve("a", [2.0, 1.0], [[2.0, 1.1]])
    assert "From step 1 on, rounding alone may move these losses by 1 % or more" in shown(judge(chaotic, chaotic, FP32))


@pytest.mark.parametrize(
    ("steps", "parts_at", "expected"),
    [
        (100, 40, [0, 38, 39, 40, 41, 42, 44, 46, 50, 58, 74, 99]),
        (100, None, [0, 1, 2, 4, 6, 10, 18, 34, 66, 99]),
        (3, 2, [0, 1, 2]),
        (1, 0, [0]),
    ],
)
def test_the_steps_around_the_parting_and_ever_fewer_after_it(
    steps: int, parts_at: int | None, expected: list[int]
) -> None:
    assert steps_to_show(steps, parts_at) == expected
