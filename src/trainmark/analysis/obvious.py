"""A difference so large that two rounds decide it.

An interval from two rounds is useless: Student's t has one degree of freedom, so at the confidence
of a look its half-width is more than 100 standard deviations. But a GPU that is 20 times as fast as
a CPU needs no interval: all measured deviations between two processes are far below the logarithm
of 20. If two rounds agree that a side is faster by more than :data:`THRESHOLD`, the verdict is
*faster*, and the smaller ratio divided by the threshold is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainmark.analysis.statistics import Estimate

ROUNDS = 2
"""Number of rounds that decide an obvious difference."""

BLOCKS = 2
"""Number of blocks of each round that count: the first ones, which are those of the opening.

A training adds blocks to its round. If these also counted, the rule would have a second chance of
an error.
"""

ASSUMED_DEVIATION = 0.3
"""Assumed standard deviation of a round's log ratio, an upper limit of what was measured.

Between two sides on a CPU it was 0.02 (docs/results/verdict); between a CPU and an H100, it was
0.22 in four rounds on one machine (docs/results/gpu).
"""

THRESHOLD = 1.66
"""Ratio that both rounds have to exceed; its logarithm is 1.69 times the assumed deviation.

Two equal sides exceed it in the same direction by chance in 0.4 % of all comparisons if errors are
normal, and in 0.2 % if they have the tails of Student's t with three degrees of freedom
(bench/looks.py).
"""


def obvious_difference(log_ratios: Sequence[float]) -> Estimate | None:
    """Return the ratio of two rounds with one bound; None without an obvious difference.

    Args:
        log_ratios: one log ratio per round, in the order measured; only the first two count, so
            that further rounds are not further chances of an error.

    Returns:
        The geometric mean of both ratios. If it is above 1, it has a lower bound only; if below 1,
        an upper one only.
    """
    first_two = log_ratios[:ROUNDS]
    if len(first_two) < ROUNDS:
        return None
    threshold = math.log(THRESHOLD)
    lowest = min(first_two)
    highest = max(first_two)
    ratio = math.exp(math.fsum(first_two) / ROUNDS)
    if lowest > threshold:
        return Estimate(ratio, math.exp(lowest - threshold), None)
    if highest < -threshold:
        return Estimate(ratio, None, math.exp(highest + threshold))
    return None
