"""Compare speeds by interleaved slices: both sides are alive, and one computes at a time.

There are two levels: the blocks of a round share its processes, whose memory layout is random, so
their trimmed mean is one estimate; the rounds give the interval. A block disturbed by other
processes is excluded, whichever side was affected.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from trainmark.analysis.grouping import grouped
from trainmark.analysis.obvious import BLOCKS, ROUNDS, obvious_difference
from trainmark.analysis.statistics import (
    ROUNDS_TRIMMED,
    SLICES_CONFIDENCE,
    Estimate,
    paired_difference,
    trimmed_mean,
)
from trainmark.analysis.student import t_quantile
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record, Slice, are_disturbed

FEWEST_KEPT = 0.5
"""Smallest share of undisturbed blocks for a verdict."""
FEWEST_BLOCKS = 4
"""Minimum number of blocks of a round."""
MOST_BLOCKS = 24
"""Maximum number of blocks of a round."""


@dataclass(frozen=True)
class Block:
    """Adjacent slices of two sides.

    Args:
        number: its number in the round, from 0.
        log_ratio: logarithm of reference seconds / these seconds per example.
        disturbed: whether other processes took too much time during one of the slices.
    """

    number: int
    log_ratio: float
    disturbed: bool


@dataclass(frozen=True)
class SliceComparison:
    """Two sides compared by slices.

    Args:
        rounds: the blocks of each round that both sides share, at least one.
    """

    rounds: tuple[tuple[Block, ...], ...]

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return sum(len(blocks) for blocks in self.rounds)

    @property
    def disturbed(self) -> int:
        """Number of excluded blocks."""
        return sum(block.disturbed for block in itertools.chain.from_iterable(self.rounds))

    @property
    def ratios(self) -> list[list[float]]:
        """Log ratios of the undisturbed blocks of each round."""
        return [
            [block.log_ratio for block in blocks if not block.disturbed] for blocks in self.rounds
        ]

    @property
    def kept(self) -> tuple[float, ...]:
        """One log ratio per round with an undisturbed block."""
        return tuple(trimmed_mean(ratios) for ratios in self.ratios if ratios)

    @property
    def all(self) -> tuple[float, ...]:
        """One log ratio per round, of all its blocks."""
        return tuple(trimmed_mean([block.log_ratio for block in blocks]) for blocks in self.rounds)

    @property
    def too_disturbed(self) -> bool:
        """Whether too few undisturbed blocks are left for a verdict."""
        return self.disturbed > (1 - FEWEST_KEPT) * self.blocks

    def ratio(self, confidence: float = SLICES_CONFIDENCE, *, disturbed: bool = False) -> Estimate:
        """Return the speed-up over the reference with its interval over the rounds."""
        of_rounds = self.all if disturbed else self.kept or self.all
        return paired_difference(of_rounds, ROUNDS_TRIMMED, confidence).exponential()

    def obvious(self, *, disturbed: bool = False) -> Estimate | None:
        """Return the speed-up with its bound if the first two rounds show that it is obvious.

        Only their first blocks count.
        No later block or round replaces a disturbed one, because the rule may be looked at
        only once.

        Args:
            disturbed: include blocks that other processes disturbed.
        """
        of_rounds: list[float] = []
        for blocks in self.rounds[:ROUNDS]:
            opening = [block for block in blocks if block.number < BLOCKS]
            ratios = [block.log_ratio for block in opening if disturbed or not block.disturbed]
            if ratios:
                of_rounds.append(trimmed_mean(ratios))
        return obvious_difference(of_rounds)

    @property
    def is_obvious(self) -> bool:
        """Whether the first two rounds show an obvious difference."""
        return self.obvious() is not None


def compare_slices(reference: Sequence[Record], these: Sequence[Record]) -> SliceComparison | None:
    """Return the blocks that both sides share; None if there are none.

    If the steps of a side take longer and longer, the faster side is soon at later and longer
    ones, so only blocks with equal numbers of steps count.
    """
    grows = are_growing((*reference, *these))
    first = _by_round(reference)
    second = _by_round(these)
    shared = [
        tuple(_blocks(first[key], second[key], equal_steps=grows)) for key in first if key in second
    ]
    rounds = tuple(blocks for blocks in shared if blocks)
    return SliceComparison(rounds) if rounds else None


def are_growing(records: Iterable[Record]) -> bool:
    """Return whether the steps of one of these take longer and longer."""
    return any(Caveat.GROWING in record.caveats for record in records)


def steps_a_second(records: Iterable[Record]) -> float | None:
    """Return how many steps stand for a second in slices with equal numbers of steps.

    The slices of all sides then take as long as usual on average. The result is None unless steps
    take longer and longer.
    """
    every = list(records)
    if not are_growing(every):
        return None
    observed = [record.observed for record in every if record.observed is not None]
    known = [each for each in observed if each.steps > 1 and each.seconds > 0]
    return 1 / statistics.fmean(each.seconds / (each.steps - 1) for each in known)


def _by_round(records: Iterable[Record]) -> dict[tuple[str, str, int], Mapping[int, list[Slice]]]:
    """Return the slices of each block, by round, in the order in which the rounds began."""
    rounds: dict[tuple[str, str, int], Mapping[int, list[Slice]]] = {}
    for record in sorted(records, key=attrgetter("created", "round")):
        if record.slices:
            key = (record.group.id, record.group.session or "", record.round)
            rounds[key] = grouped(record.slices, attrgetter("block"))
    return rounds


def _blocks(
    reference: Mapping[int, list[Slice]], these: Mapping[int, list[Slice]], *, equal_steps: bool
) -> Iterator[Block]:
    for number in sorted(reference.keys() & these.keys()):
        before = reference[number]
        after = these[number]
        if len(before) != 2 or len(after) != 2:
            continue  # a side ended during the block, so its order is not balanced
        if equal_steps and len({each.timed_steps for each in (*before, *after)}) > 1:
            continue
        log_ratio = _log_seconds(before) - _log_seconds(after)
        yield Block(number, log_ratio, are_disturbed([*before, *after]))


def _log_seconds(slices: Iterable[Slice]) -> float:
    """Return the mean logarithm of the seconds per example."""
    return statistics.fmean(math.log(each.seconds / each.examples) for each in slices)


@dataclass(frozen=True)
class Deviations:
    """Standard deviations of log ratios.

    Args:
        between: between processes.
        within: between blocks of the same processes.
    """

    between: float
    within: float


def deviations(rounds: Iterable[Sequence[float]]) -> Deviations | None:
    """Estimate by a one-way layout; None if fewer than two rounds have two blocks."""
    groups = [ratios for ratios in rounds if len(ratios) > 1]
    if len(groups) < 2:
        return None
    within = statistics.fmean(statistics.variance(ratios) for ratios in groups)
    size = statistics.harmonic_mean([len(ratios) for ratios in groups])
    between = statistics.variance(statistics.fmean(ratios) for ratios in groups) - within / size
    return Deviations(math.sqrt(max(between, 0.0)), math.sqrt(within))


def blocks_that_pay(
    found: Deviations,
    start_seconds: float,
    block_seconds: float,
    rounds: int,
    left: float,
    fewest: int = FEWEST_BLOCKS,
) -> int:
    """Return the number of blocks per further round that gives the narrowest interval.

    More blocks pay if blocks differ and processes start slowly, fewer if processes differ (Kalibera
    and Jones 2013), and fewer if there are few rounds, since each additional round reduces
    Student's t.

    Args:
        start_seconds: seconds until all processes of a round are ready.
        rounds: number of rounds so far.
        left: seconds left for further rounds.
        fewest: minimum number of blocks of a round.
    """

    def half_width(blocks: int) -> float:
        number = rounds + max(int(left / (start_seconds + blocks * block_seconds)), 1)
        error = math.sqrt((found.between**2 + found.within**2 / blocks) / number)
        return t_quantile(SLICES_CONFIDENCE, max(number - 1, 1)) * error

    most = min(MOST_BLOCKS, int((left - start_seconds) / block_seconds))
    return min(range(fewest, max(most, fewest) + 1), key=half_width)
