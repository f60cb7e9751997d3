"""Does a side change its pace within a run, against the other?

Warm-up that outlasts the untimed start, or a clock that falls under load, shows as a step in the log ratios of
successive blocks, at the same place in every round. The largest step over all places is held against those of rounds
whose blocks are shuffled, so the number of places that were tried is accounted for.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Sequence

SHUFFLES = 999
LEAST_STEP = 0.03
"""In the log ratio; a smaller one is not worth a word."""
CHANCE = 0.005
"""Of a word where there is no change."""
_FEWEST_BLOCKS = 4


def changes_pace(rounds: Sequence[Sequence[float]]) -> bool:
    """Whether the log ratios of the blocks of each round take a step.

    Args:
        rounds: shorter ones, with fewer than 4 blocks, don't count.
    """
    rounds = [ratios for ratios in rounds if len(ratios) >= _FEWEST_BLOCKS]
    found = _largest_step(rounds)
    if found < LEAST_STEP:
        return False
    rng, larger = random.Random(0), 0
    for _ in range(SHUFFLES):
        larger += _largest_step([rng.sample(ratios, len(ratios)) for ratios in rounds]) >= found
        if (1 + larger) / (1 + SHUFFLES) > CHANCE:
            return False
    return True


def _largest_step(rounds: Sequence[Sequence[float]]) -> float:
    """Between the mean behind a place and that before it, over all rounds."""
    steps = zip(*map(_steps, rounds), strict=False)  # at the places that all rounds have
    return max((abs(statistics.fmean(at_one_place)) for at_one_place in steps), default=0.0)


def _steps(ratios: Sequence[float]) -> Iterator[float]:
    """At each place, first to last."""
    before, count = 0.0, len(ratios)
    total = sum(ratios)
    for place, ratio in enumerate(ratios[:-1], start=1):
        before += ratio
        yield (total - before) / (count - place) - before / place
