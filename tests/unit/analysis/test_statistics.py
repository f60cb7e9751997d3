"""Intervals and verdicts, by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmark.analysis.statistics import (
    WHOLE,
    Estimate,
    learning_verdict,
    median,
    median_interval,
    paired_difference,
    speed_verdict,
    unpaired_difference,
)

LN2 = math.log(2)


def test_paired_log_ratios_by_hand() -> None:
    # 4/2, 4/1, 4/4: the logarithms are ln 2 times 1, 2, 0, so mean ln 2, deviation ln 2, and t(2) =
    # 4.302653: ln 2 ± 4.302653 · 0.693147 / √3 = 0.693147 ± 1.721875
    ratio = paired_difference([LN2, 2 * LN2, 0.0]).exponential()
    assert ratio.value == pytest.approx(2)
    assert ratio.low == pytest.approx(0.357461, rel=1e-5)
    assert ratio.high == pytest.approx(11.190004, rel=1e-5)


def test_of_five_the_outer_two_are_trimmed_by_hand() -> None:
    # 1, 2, 4 stay: mean 7/3. Winsorized 1, 1, 2, 4, 4 has variance 2.3; error² = 4 · 2.3 / (3 · 2)
    # = 1.533333, and t(2) = 4.302653: 4.302653 · 1.238278 = 5.327882
    estimate = paired_difference([4.0, 100.0, 1.0, -50.0, 2.0])
    assert estimate.value == pytest.approx(7 / 3)
    assert estimate.low == pytest.approx(7 / 3 - 5.327882, rel=1e-5)
    assert estimate.high == pytest.approx(7 / 3 + 5.327882, rel=1e-5)


def test_unpaired_means_are_trimmed_too_by_hand() -> None:
    # the same five against themselves less 3: errors² 1.533333 each, degrees (2e)²/(2·e²/2) = 4,
    # t(4) = 2.776445
    estimate = unpaired_difference([4.0, 100.0, 1.0, -50.0, 2.0], [1.0, 97.0, -2.0, -53.0, -1.0])
    assert estimate.value == pytest.approx(3)
    assert estimate.high == pytest.approx(3 + 2.776445 * math.sqrt(2 * 1.533333), rel=1e-5)


def test_nothing_is_trimmed_of_four_or_where_it_is_not_wanted() -> None:
    assert paired_difference([0.0, 0.0, 0.0, 8.0]).value == 2
    assert paired_difference([0.0, 0.0, 0.0, 0.0, 10.0], trimmed=WHOLE).value == 2
    assert paired_difference([0.0, 0.0, 0.0, 0.0, 10.0]).value == 0


def test_welch_by_hand() -> None:
    # means 2 and 5, variances 1 and 4, n = 3 and 3: standard error √(1/3 + 4/3) = 1.290994,
    # ν = (5/3)² / ((1/3)²/2 + (4/3)²/2) = 2.941176, t = 3.219; 3.219 · 1.290994 = 4.156
    estimate = unpaired_difference([1, 2, 3], [3, 5, 7])
    assert estimate.value == pytest.approx(-3)
    assert estimate.low == pytest.approx(-7.156, abs=2e-3)
    assert estimate.high == pytest.approx(1.156, abs=2e-3)


def test_welch_of_equal_values_is_a_point() -> None:
    assert unpaired_difference([2, 2, 2], [1, 1, 1]) == Estimate(1, 1, 1)


def test_two_values_give_no_interval() -> None:
    assert paired_difference([1.0, 2.0]) == Estimate(1.5, None, None)
    assert unpaired_difference([1.0, 1.1], [1.0, 1.0, 1.0]).low is None
    assert median_interval([1.0, 2.0]) is None
    assert paired_difference([0.1, 0.2]).exponential().low is None


def test_the_median() -> None:
    assert median([]) is None
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 2, 3]) == 2.5


def test_nan_is_worse_than_any_number() -> None:
    assert median([math.nan, 0.1, 0.2]) == 0.2
    assert math.isnan(median([math.nan, 0.1, math.nan]) or 0)


def test_the_interval_of_a_median_is_a_pair_of_ordered_values() -> None:
    assert median_interval([5, 1, 4, 2, 3]) == (1, 5)
    # n = 9: the second and the eighth leave out 2·(1 + 9)/2⁹ = 3.9 %, the third and the seventh 18
    # %
    assert median_interval([9, 8, 7, 6, 5, 4, 3, 2, 1]) == (2, 8)
    # n = 20: ranks 6 and 15, as tabulated
    assert median_interval(list(range(1, 21))) == (6, 15)


@given(st.lists(st.floats(0.01, 100), min_size=3, max_size=40))
def test_a_median_lies_in_its_interval(values: list[float]) -> None:
    low, high = median_interval(values) or (math.nan, math.nan)
    assert low <= (median(values) or 0) <= high


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.10, 1.50, "faster"),
        (0.50, 0.90, "slower"),
        (0.98, 1.02, "same"),
        (0.90, 1.02, "unclear"),
        (0.98, 1.20, "unclear"),
        (1.005, 1.01, "faster"),  # excludes 1 and lies inside the margin: DESIGN's first rule wins
        (0.99, 0.995, "slower"),
        (1.0, 1.02, "same"),  # touching 1 does not exclude it
        (1.0, 1.0, "same"),
        (None, None, "unclear"),
    ],
)
def test_verdicts_on_speed(low: float | None, high: float | None, verdict: str) -> None:
    assert speed_verdict(Estimate(1, low, high), 0.03) == verdict


@given(st.floats(0.5, 2), st.floats(0.5, 2))
def test_swapping_the_sides_swaps_the_verdict(a: float, b: float) -> None:
    low, high = sorted((a, b))
    swapped = {"faster": "slower", "slower": "faster"}
    verdict = speed_verdict(Estimate(1, low, high), 0.03)
    other = speed_verdict(Estimate(1, 1 / high, 1 / low), 0.03 + 1e-12)
    near_the_margin = any(
        abs(abs(math.log(bound)) - math.log(1.03)) < 1e-9 for bound in (low, high)
    )
    assert near_the_margin or other == swapped.get(verdict, verdict)


def test_the_margin_decides_what_is_the_same() -> None:
    assert speed_verdict(Estimate(1, 0.96, 1.04), 0.03) == "unclear"
    assert speed_verdict(Estimate(1, 0.96, 1.04), 0.05) == "same"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.004, 0.004, "same"),
        (0.001, 0.002, "same"),  # surely another figure, and surely the same thing learnt
        (0.001, 0.02, "differs"),
        (-0.02, -0.006, "differs"),
        (-0.02, 0.02, "unclear"),
        (None, None, "unclear"),
    ],
)
def test_verdicts_on_learning(low: float | None, high: float | None, verdict: str) -> None:
    assert learning_verdict(Estimate(0, low, high), 0.005) == verdict
