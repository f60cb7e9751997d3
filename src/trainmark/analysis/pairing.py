"""Match the runs of two groups: by round, or else all runs of each."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from trainmark.analysis.grouping import grouped
from trainmark.analysis.statistics import (
    FEWEST_FOR_INTERVAL,
    Estimate,
    paired_difference,
    unpaired_difference,
)
from trainmark.analysis.summary import RunSummary

Reading = Callable[[RunSummary], float | None]
Round = tuple[str, int]


@dataclass(frozen=True)
class Match:
    """The values of two groups; if ``paired``, equal positions were measured in the same round."""

    reference: tuple[float, ...]
    these: tuple[float, ...]
    paired: bool

    @property
    def count(self) -> int:
        """Number of rounds, or of runs of the smaller side, that the estimate is based on."""
        return min(len(self.reference), len(self.these))

    def difference(self, trimmed: float) -> Estimate | None:
        """Return reference minus these; None if a side has no value.

        Args:
            trimmed: share of the values trimmed at each end.
        """
        if not self.count:
            return None
        if not self.paired:
            return unpaired_difference(self.reference, self.these, trimmed)
        pairs = zip(self.reference, self.these, strict=True)
        return paired_difference([a - b for a, b in pairs], trimmed)


def match(
    reference: Sequence[RunSummary], these: Sequence[RunSummary], of: Reading, *, pairs: bool
) -> Match:
    """Pair the values of two groups by round.

    Runs of one round share the machine's slow drifts, which then cancel. If too few rounds are
    shared for an interval and both sides have enough runs without pairing, they are compared
    unpaired.

    Args:
        reference: runs of one group.
        these: runs of the other.
        of: the compared figure; runs without it are omitted.
        pairs: False for ``continued`` repeats, which follow each other in one process and are never
            interleaved.
    """
    left = _known(reference, of)
    right = _known(these, of)
    a = _by_round(left)
    b = _by_round(right)
    shared = sorted(a.keys() & b.keys()) if pairs else []
    enough_unpaired = min(len(left), len(right)) >= FEWEST_FOR_INTERVAL
    if len(shared) >= FEWEST_FOR_INTERVAL or (shared and not enough_unpaired):
        before = tuple(a[round] for round in shared)
        after = tuple(b[round] for round in shared)
        return Match(before, after, paired=True)
    before = tuple(value for _, value in left)
    after = tuple(value for _, value in right)
    return Match(before, after, paired=False)


def _known(runs: Sequence[RunSummary], of: Reading) -> list[tuple[Round, float]]:
    """Return the round and the value of each run that has one."""
    values = (((run.group, run.round), of(run)) for run in runs)
    return [(round, value) for round, value in values if value is not None and math.isfinite(value)]


def _by_round(known: Sequence[tuple[Round, float]]) -> dict[Round, float]:
    """Return one value per round; the mean if a round has several runs of one group."""
    rounds = grouped(known, itemgetter(0))
    return {round: statistics.fmean(value for _, value in same) for round, same in rounds.items()}
