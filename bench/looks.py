"""How often is a verdict wrong, with all looks that may end the measuring?

    python bench/looks.py [--draws 10000] [--seed 1]

It draws rounds of two sides, lets trainmark's own rule look at them as `trainmark run` does, and
counts the verdicts. Every round is one log ratio: that of the sides, plus an error of the given
standard deviation. Errors are normal, or have the tails of Student's t with three degrees of
freedom, scaled to the same deviation. No training runs, so the figures say whether the rule keeps
its promise if its assumptions hold, not whether they hold on a machine; for that, see
bench/verdict.py.

The first table has equal sides: every `faster` or `slower` is false. The second has sides that
differ: it shows how often two rounds are enough. The third shows how often the printed interval or
bound contains the true ratio.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from trainmark.analysis.comparison import MARGIN, by_slices
from trainmark.analysis.obvious import ROUNDS
from trainmark.analysis.results import Speedup
from trainmark.analysis.slices import Block, SliceComparison
from trainmark.analysis.statistics import LOOK_CONFIDENCE, SLICES_CONFIDENCE
from trainmark.study.rounds import LOOKS

DEVIATIONS = (0.02, 0.05, 0.1, 0.2, 0.3)
MOST_ROUNDS = (4, 8, 38)
"""Maximum numbers of rounds: 4 with a slow start, 8 for the README's first command, 38 within ten
minutes."""
DIFFERENCES = ((3.0, 0.1), (19.0, 0.3))
"""Ratios that two rounds must decide, each with the deviation of its rounds."""
COVERED = (1.0, 1.05, 1.5, 3.0)
"""Ratios whose coverage is counted: stopping early could prefer intervals that are too narrow."""
COVERED_DEVIATIONS = (0.02, 0.1, 0.3)
TAILS = ("normal", "t3")
DEGREES = 3


@dataclass(frozen=True)
class Ended:
    """How a comparison ended.

    Args:
        rounds: number of rounds that it took.
        verdict: its verdict.
        low, high: the printed bounds of the ratio.
    """

    rounds: int
    verdict: str
    low: float | None
    high: float | None

    @property
    def is_decided(self) -> bool:
        """Whether one side is called faster."""
        return self.verdict in ("faster", "slower")

    def holds(self, ratio: float) -> bool:
        """Whether the printed interval or bound holds this ratio."""
        return (self.low is None or self.low <= ratio) and (self.high is None or ratio <= self.high)


def errors(tail: str, deviation: float, chance: random.Random) -> Callable[[], float]:
    """Return a function that draws an error with this standard deviation."""

    def normal() -> float:
        return chance.gauss(0.0, deviation)

    def student() -> float:
        chi_squared = sum(chance.gauss(0.0, 1.0) ** 2 for _ in range(DEGREES))
        value = chance.gauss(0.0, 1.0) / math.sqrt(chi_squared / DEGREES)
        own_deviation = math.sqrt(DEGREES / (DEGREES - 2))
        return deviation * value / own_deviation

    return normal if tail == "normal" else student


def end_of(draw: Callable[[int], tuple[Block, ...]], most_rounds: int) -> Ended:
    """Draw rounds until a look decides, or until there are ``most_rounds``.

    Args:
        draw: returns the blocks of a round; it gets the number of the round, from 0.
        most_rounds: number of rounds after which the result is printed in any case.
    """
    rounds: list[tuple[Block, ...]] = []
    while True:
        rounds.append(draw(len(rounds)))
        number = len(rounds)
        is_last = number == most_rounds
        if not is_last and number not in LOOKS:
            continue
        printed = speedup_of(rounds, SLICES_CONFIDENCE)
        if is_last:
            return Ended(number, printed.verdict, printed.low, printed.high)
        look = speedup_of(rounds, LOOK_CONFIDENCE)
        if look.verdict == printed.verdict != "unclear":
            return Ended(number, printed.verdict, printed.low, printed.high)


def compare_once(log_ratio: float, draw: Callable[[], float], most_rounds: int) -> Ended:
    """Compare sides whose rounds have one block each, with an error that ``draw`` returns."""

    def one_block(_: int) -> tuple[Block, ...]:
        return (Block(0, log_ratio + draw(), disturbed=False),)

    return end_of(one_block, most_rounds)


def speedup_of(rounds: list[tuple[Block, ...]], confidence: float) -> Speedup:
    """Return what trainmark says about these rounds."""
    speedup, _ = by_slices(SliceComparison(tuple(rounds)), MARGIN, confidence, learns=True)
    return speedup


def many(
    log_ratio: float, tail: str, deviation: float, most_rounds: int, draws: int, seed: int
) -> list[Ended]:
    """Return how ``draws`` comparisons end."""
    chance = random.Random(f"{seed} {log_ratio} {tail} {deviation} {most_rounds}")
    draw = errors(tail, deviation, chance)
    return [compare_once(log_ratio, draw, most_rounds) for _ in range(draws)]


def share(found: list[Ended], *, after: int | None = None) -> float:
    """Return the share of decided comparisons; with ``after``, of those decided after this many
    rounds."""
    counted = [each for each in found if each.is_decided and after in (None, each.rounds)]
    return len(counted) / len(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{options.draws:,} comparisons a row, seed {options.seed}")
    print("\nEqual sides: false verdicts")
    print(
        f"{'errors':8}{'deviation':>10}{'rounds at most':>16}{'after two rounds':>18}{'in all':>9}"
    )
    for tail in TAILS:
        for deviation in DEVIATIONS:
            for most in MOST_ROUNDS:
                found = many(0.0, tail, deviation, most, options.draws, options.seed)
                early = share(found, after=ROUNDS)
                print(
                    f"{tail:8}{deviation:10.2f}{most:16}{early:18.2%}{share(found):9.2%}",
                    flush=True,
                )
    print("\nDifferent sides: decided after two rounds")
    print(f"{'errors':8}{'ratio':>7}{'deviation':>10}{'decided':>10}")
    for tail in TAILS:
        for ratio, deviation in DIFFERENCES:
            found = many(math.log(ratio), tail, deviation, 3, options.draws, options.seed)
            early = share(found, after=ROUNDS)
            print(f"{tail:8}{ratio:7.0f}{deviation:10.1f}{early:10.2%}", flush=True)
    print("\nWhat is printed holds the true ratio")
    print(f"{'errors':8}{'ratio':>7}{'deviation':>10}{'rounds at most':>16}{'holds':>9}")
    for tail in TAILS:
        for ratio in COVERED:
            for deviation in COVERED_DEVIATIONS:
                for most in MOST_ROUNDS[1:]:
                    found = many(
                        math.log(ratio), tail, deviation, most, options.draws, options.seed
                    )
                    held = sum(each.holds(ratio) for each in found) / len(found)
                    print(f"{tail:8}{ratio:7.2f}{deviation:10.2f}{most:16}{held:9.2%}", flush=True)


if __name__ == "__main__":
    main()
