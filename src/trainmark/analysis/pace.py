"""Detect whether a side's speed changes within a run, relative to the other.

Warm-up longer than the untimed start, or a clock that falls under load, shows as a step in the log
ratios of successive blocks, at the same place in every round. The largest step over all places is
compared with those of rounds with shuffled blocks (a permutation test), which accounts for the
number of places.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Sequence

SHUFFLES = 999
"""Number of random orders of the blocks that the found step is compared with."""
LEAST_STEP = 0.03
"""Smallest step in the log ratio that is reported."""
CHANCE = 0.005
"""Probability of a report without a change."""
_FEWEST_BLOCKS = 4
"""Fewest blocks of a round in which a step can be told from noise."""


def changes_pace(rounds: Sequence[Sequence[float]]) -> bool:
    """Return whether the log ratios of the blocks change at the same place of each round.

    Args:
        rounds: log ratios by round; rounds with fewer than 4 blocks don't count.
    """
    rounds = [ratios for ratios in rounds if len(ratios) >= _FEWEST_BLOCKS]
    found = _largest_step(rounds)
    if found < LEAST_STEP:
        return False
    rng = random.Random(0)
    larger = 0
    for _ in range(SHUFFLES):
        larger += _largest_step([rng.sample(ratios, len(ratios)) for ratios in rounds]) >= found
        if (1 + larger) / (1 + SHUFFLES) > CHANCE:
            return False
    return True


def _largest_step(rounds: Sequence[Sequence[float]]) -> float:
    """Return the largest difference between the means after and before a place, over all rounds."""
    steps = zip(*map(_steps, rounds), strict=False)  # at the places that all rounds have
    return max((abs(statistics.fmean(at_one_place)) for at_one_place in steps), default=0.0)


def _steps(ratios: Sequence[float]) -> Iterator[float]:
    """Yield the step at each place, in order."""
    before = 0.0
    count = len(ratios)
    total = sum(ratios)
    for place, ratio in enumerate(ratios[:-1], start=1):
        before += ratio
        yield (total - before) / (count - place) - before / place
