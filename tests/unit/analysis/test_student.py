"""The t quantile against printed tables (Abramowitz and Stegun, table 26.10) and closed forms."""

from __future__ import annotations

import math

import pytest

from trainmark.analysis.student import incomplete_beta, t_quantile

# degrees of freedom: the 97.5 % point
TABLE = {
    1: 12.7062,
    2: 4.30265,
    3: 3.18245,
    4: 2.77645,
    5: 2.57058,
    9: 2.26216,
    30: 2.04227,
    120: 1.97993,
}


@pytest.mark.parametrize(("degrees", "expected"), TABLE.items())
def test_the_quantile_is_the_tabulated_one(degrees: int, expected: float) -> None:
    assert t_quantile(0.95, degrees) == pytest.approx(expected, rel=3e-6)


def test_many_degrees_give_the_normal_quantile() -> None:
    assert t_quantile(0.95, 1e7) == pytest.approx(1.959964, rel=1e-5)


def test_broken_degrees_lie_between_whole_ones() -> None:
    assert t_quantile(0.95, 3) < t_quantile(0.95, 2.5) < t_quantile(0.95, 2)


@pytest.mark.parametrize("x", [0.01, 0.3, 0.5, 0.9, 0.999])
def test_the_incomplete_beta_function_meets_its_closed_forms(x: float) -> None:
    assert incomplete_beta(0.5, 0.5, x) == pytest.approx(
        2 / math.pi * math.asin(math.sqrt(x)), rel=1e-12
    )
    assert incomplete_beta(1, 3, x) == pytest.approx(1 - (1 - x) ** 3, rel=1e-12)


@pytest.mark.parametrize(("confidence", "degrees"), [(0.95, 0), (1.0, 3), (0.0, 3)])
def test_a_quantile_that_does_not_exist_is_refused(confidence: float, degrees: float) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(confidence, degrees)
