"""Estimates with 95 % intervals, and the verdicts based on them.

Times are compared on a logarithmic scale: ratios of 2 and 1/2 are then equally far from 1, and
swapping the two sides swaps the verdict. Fewer than :data:`FEWEST_FOR_INTERVAL` values give no
interval.

On a shared machine, some runs are slower by half. They would shift the mean and widen its interval,
so the mean is trimmed; ``bench/calibrate.py`` shows the effect.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from trainmark.analysis.student import t_quantile

CONFIDENCE = 0.95
"""Confidence of all intervals except those of slices."""
SLICES_CONFIDENCE = 0.99
"""Confidence of the interval of slices that is printed.

Rounds continue until there is a verdict, so the chances of an error add up (Bonferroni). The first
look, after two rounds, may err in 0.5 % of all comparisons (:mod:`~trainmark.analysis.obvious`),
each of the four that follow in 0.25 %, and the last interval in 1 %: at most 2.5 % of equal sides
get a false verdict. Stopping early costs coverage: simulated, the printed interval held the true
ratio in at least 97.0 % of 3,000 comparisons in each of 48 conditions (``bench/looks.py``,
docs/results/verdict).
"""
LOOK_CONFIDENCE = 0.9975
"""Confidence of the interval of slices at a look that may end the measuring."""
FEWEST_FOR_INTERVAL = 3
"""Fewest values that give an interval; with two, it would be far too wide to be of use."""
TRIMMED = 0.2
"""Share of the times trimmed at each end of a trimmed mean, rounded down: one of five."""
ROUNDS_TRIMMED = 0.125
"""Likewise for rounds of slices, which are few and hardly affected by others: one of eight."""
WHOLE = 0.0
"""No trimming, for learning: the machine is not why one of five runs learns nothing."""

SpeedVerdict = Literal["faster", "slower", "same", "unclear"]
LearningVerdict = Literal["same", "differs", "unclear"]


@dataclass(frozen=True)
class Estimate:
    """A value with its interval.

    It has no bounds if there were too few values, or one if the other is unknown.
    """

    value: float
    low: float | None
    high: float | None

    def exponential(self) -> Estimate:
        """Return the estimate of a ratio from that of its logarithm."""
        return self.mapped(math.exp)

    def mapped(self, function: Callable[[float], float]) -> Estimate:
        """Return the estimate of a monotonic function of the value."""
        if self.low is None or self.high is None:
            return Estimate(function(self.value), None, None)
        return Estimate(function(self.value), *sorted((function(self.low), function(self.high))))


def mean(values: Iterable[float | None] | None) -> float | None:
    """Return the mean of the known values; None if there are none."""
    known = [value for value in values or () if value is not None]
    return statistics.fmean(known) if known else None


def paired_difference(
    differences: Sequence[float], trimmed: float = TRIMMED, confidence: float = CONFIDENCE
) -> Estimate:
    """Return the trimmed mean of paired differences with its interval ``mean ± t·error``.

    The method is that of Tukey and McLaughlin (1963).

    Needs at least one difference; with fewer than five, nothing is trimmed, and this is Student's
    interval.
    """
    middle = _middle(differences, trimmed)
    if len(differences) < FEWEST_FOR_INTERVAL:
        return Estimate(middle.mean, None, None)
    half = t_quantile(confidence, middle.kept - 1) * math.sqrt(middle.squared_error)
    return Estimate(middle.mean, middle.mean - half, middle.mean + half)


def trimmed_mean(values: Sequence[float]) -> float:
    """Return the trimmed mean of at least one value."""
    return _middle(values, TRIMMED).mean


def unpaired_difference(
    these: Sequence[float], others: Sequence[float], trimmed: float = TRIMMED
) -> Estimate:
    """Return the trimmed mean of ``these`` minus that of ``others``.

    The variances may be unequal (Yuen 1974).

    Each needs at least one value; with fewer than five, nothing is trimmed, and this is Welch's
    interval (1947).
    """
    first = _middle(these, trimmed)
    second = _middle(others, trimmed)
    difference = first.mean - second.mean
    if min(len(these), len(others)) < FEWEST_FOR_INTERVAL:
        return Estimate(difference, None, None)
    squared_error = first.squared_error + second.squared_error
    if squared_error == 0:
        return Estimate(difference, difference, difference)
    uncertainty = sum(each.squared_error**2 / (each.kept - 1) for each in (first, second))
    degrees = squared_error**2 / uncertainty
    half = t_quantile(CONFIDENCE, degrees) * math.sqrt(squared_error)
    return Estimate(difference, difference - half, difference + half)


@dataclass(frozen=True)
class _Middle:
    """The mean of the ``kept`` middle values; its error is that of all values, winsorised."""

    mean: float
    squared_error: float
    kept: int


def _middle(values: Sequence[float], trimmed: float) -> _Middle:
    ordered = sorted(values)
    count = len(values)
    cut = int(trimmed * count)
    middle = ordered[cut : count - cut]
    kept = len(middle)
    if kept < 2:
        return _Middle(statistics.fmean(middle), 0.0, kept)
    winsorized = [middle[0]] * cut + middle + [middle[-1]] * cut
    squared_error = (count - 1) * statistics.variance(winsorized) / (kept * (kept - 1))
    return _Middle(statistics.fmean(middle), squared_error, kept)


def median(values: Iterable[float | None]) -> float | None:
    """Return the median of the known values, if any; NaN counts as worse than any number."""
    known = (value for value in values if value is not None)
    ordered = sorted(known, key=lambda value: (math.isnan(value), value))
    return statistics.median(ordered) if ordered else None


def lower_quartile(values: Sequence[float]) -> float:
    """Return the lower quartile of at least one value.

    It is used for times in one process: other processes only ever add to them, so it is closer to
    the undisturbed time than the median, and more stable than the minimum.
    """
    return sorted(values)[(len(values) - 1) // 4]


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the distribution-free interval of the median: two of the ordered values.

    See David and Nagaraja, 2003, 7.1. It is the narrowest symmetric pair that covers the median
    with at least 95 %. For 3, 4 or 5 values no pair does, so it is their whole range, which covers
    it with 75, 87.5 or 93.75 %. None for fewer than 3.
    """
    count = len(values)
    if count < FEWEST_FOR_INTERVAL:
        return None
    ordered = sorted(values)
    # The median is outside the pair (cut, count - 1 - cut) with twice the probability outside[cut].
    outside = itertools.accumulate(math.comb(count, cut) / 2**count for cut in range(count))
    cut = max(sum(2 * each <= 1 - CONFIDENCE for each in outside) - 1, 0)
    return ordered[cut], ordered[count - 1 - cut]


def speed_verdict(ratio: Estimate, margin: float) -> SpeedVerdict:
    """Return the verdict on a speed-up: the first that applies.

    ``faster`` or ``slower``: the interval, or the only known bound, excludes 1, however close to 1
    it is. ``same``: the interval contains 1 and is inside ``[1/(1 + margin), 1 + margin]``. Else,
    or without a bound, ``unclear``.

    Args:
        ratio: reference seconds / these seconds.
        margin: largest difference that counts as the same, as a fraction such as 0.03.
    """
    if ratio.low is not None and ratio.low > 1:
        return "faster"
    if ratio.high is not None and ratio.high < 1:
        return "slower"
    if ratio.low is None or ratio.high is None:
        return "unclear"
    is_within = 1 / (1 + margin) <= ratio.low and ratio.high <= 1 + margin
    return "same" if is_within else "unclear"


def learning_verdict(difference: Estimate, margin: float) -> LearningVerdict:
    """Return the verdict on a difference of accuracies.

    The question is whether they are the same, so the test of equivalence comes first.

    ``same``: the interval is inside ``±margin``, even if it excludes 0. ``differs``: it excludes 0.
    Else, or without an interval, ``unclear``.
    """
    if difference.low is None or difference.high is None:
        return "unclear"
    if -margin <= difference.low and difference.high <= margin:
        return "same"
    return "differs" if difference.low > 0 or difference.high < 0 else "unclear"
