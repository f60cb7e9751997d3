"""What changes to a user's script give: how much faster a training gets, and whether it still
learns the same.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from msgspec import structs

from trainmark.analysis.experiments import Kind, Part
from trainmark.analysis.slices import compare_slices
from trainmark.analysis.statistics import WHOLE, Estimate, paired_difference
from trainmark.record.record import Record

SMALLEST_GAIN = 1.03
"""Smaller speed-ups are not worth a change."""
SAMPLED = "samples of the running lines"
"""Proof of a finding that no experiment gave; such shares are estimates."""
Curve = Literal["same", "better", "worse", "unclear"]

_FEWEST_LOSSES = 8
_MOST_LOSSES = 2_000
_PARTS = 8
"""Of the compared steps; their means are compared, since the losses of neighbouring steps depend on
each other."""
_MATTERS = 0.1
"""Share of what was learnt so far that a difference of the losses must exceed to matter."""
_LEAST_LEARNT = 0.02
"""At least this share of the loss counts as learnt, so that rounding doesn't matter in a training
that stands still."""
_PROCESS_NOISE = 0.015
"""Logarithm by which processes of the same training differ; added to intervals from blocks."""
_MANY_ROUNDS = 6
_MANY_BLOCKS = 8
"""Rounds that give an interval by themselves; undisturbed blocks that are enough without the
others."""
_MUCH_MORE = 2.0
"""Factor of logarithms: a larger batch comes first only if it gives so much more than any other
change."""
_MOST = 0.5
"""Share of a diagnosis's gain (logarithms) that a change must reach to be named instead of it."""


@dataclass(frozen=True)
class Finding:
    """What one change gives.

    Args:
        change: its name, such as ``workers=2``; several joined by ``+``.
        speedup: of a training step, per example; with evaluations if they take long.
        fresh: whether it was measured again after it had won.
        learning: its losses, compared with those of the unchanged script.
        proof: how it is known that the change took effect.
        place: ``file:line`` in the script; None if unknown.
        memory: peak memory of the device, or of the host if the script trains on the CPU, as a
            multiple of the unchanged script's; None if unknown.
    """

    change: str
    kind: Kind
    part: Part | None
    speedup: Estimate
    fresh: bool
    learning: Curve
    proof: str
    place: str | None
    memory: float | None = None

    @property
    def wins(self) -> bool:
        """Whether it is certainly faster, and by enough to be worth it."""
        return (
            self.speedup.value > SMALLEST_GAIN
            and self.speedup.low is not None
            and self.speedup.low > 1
        )

    @property
    def harms(self) -> bool:
        """Whether the training learns less by it."""
        return self.learning == "worse" and self.kind != "diagnosis"

    @property
    def helps(self) -> bool:
        """Whether it wins, and more is learnt in the same time, as far as is known."""
        return self.wins and not self.harms and (self.kind, self.learning) != ("learning", "same")

    @property
    def can_be_made(self) -> bool:
        """Whether it wins and is a valid training that learns the same."""
        return self.wins and self.kind == "change" and not self.harms


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, those to name first at the top.

    A change to make comes before the diagnosis of the same part of the script if it gives most of
    what the diagnosis shows. A larger batch makes everything cheaper that happens once a step, so
    it comes before other changes only if they don't explain what it gives, and if it learns more in
    the same time. Of those that win, what harms is last.
    """
    every = list(findings)
    usual = [each for each in every if each.wins and each.kind != "learning" and not each.harms]
    others = max(map(_gain, usual), default=0.0)

    def order(found: Finding) -> tuple[int, float, float]:
        if not found.wins:
            return 3, -found.speedup.value, 0.0
        if found.harms:
            return 2, -_gain(found), 0.0
        if found.kind == "learning":
            first = found.learning == "better" and _gain(found) > _MUCH_MORE * others
            return 0 if first else 1, -_gain(found), 0.0
        most = max(_gain(each) for each in usual if each.part == found.part)
        explains = found.kind == "change" and _gain(found) >= _MOST * most
        return 0, -most, -_gain(found) - (most if explains else 0.0)

    return sorted(every, key=order)


def candidates(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings from single processes that may win, in the order of :func:`ranked`.

    The process of the unchanged script may have been a fast one; most changes do nothing, so that
    their median tells.
    """
    every = list(findings)
    middle = min(
        [1.0, *([statistics.median(each.speedup.value for each in every)] if every else [])]
    )
    scaled = [
        replace(each, speedup=each.speedup.mapped(lambda ratio: ratio / middle)) for each in every
    ]
    return [each for each in ranked(scaled) if each.speedup.value > SMALLEST_GAIN]


def _gain(found: Finding) -> float:
    """Return the gain to rank by: for another precision, which may harm a long training, only what
    is certain.
    """
    certain = found.speedup.low if found.part == "precision" else None
    return math.log(certain or found.speedup.value)


def speedup(
    reference: Sequence[Record], these: Sequence[Record], *, per_example: bool = False
) -> Estimate | None:
    """Return the speed-up by slices, over rounds if there are enough of them, else over the blocks
    of all rounds.

    The interval of a few rounds would be very wide, so theirs is that of their blocks, widened by
    how much processes of the same training usually differ.

    Args:
        per_example: compare the time of an example, for steps of different sizes; by default, that
            of a step.
    """
    if not per_example:
        reference, these = ([_by_steps(each) for each in runs] for runs in (reference, these))
    if (sliced := compare_slices(reference, these)) is None:
        return None
    if len(sliced.kept) >= _MANY_ROUNDS:
        return paired_difference(sliced.kept).exponential()
    blocks = [block for blocks in sliced.rounds for block in blocks]
    quiet = [block for block in blocks if not block.disturbed]
    found = paired_difference(
        [each.log_ratio for each in (quiet if len(quiet) >= _MANY_BLOCKS else blocks)]
    )
    if found.low is not None and found.high is not None:
        found = Estimate(found.value, found.low - _PROCESS_NOISE, found.high + _PROCESS_NOISE)
    return found.exponential()


def _by_steps(record: Record) -> Record:
    slices = [structs.replace(each, examples=float(each.timed_steps)) for each in record.slices]
    return structs.replace(record, slices=slices)


def compare_losses(
    reference: Sequence[Sequence[float]], these: Sequence[Sequence[float]], steps: float = 1
) -> Curve:
    """Compare the losses of runs with those of unchanged runs, step by step.

    The mean difference over the second half of the steps must be certain, and exceed a share of
    what was learnt plus the spread between unchanged runs. Runs with a seed repeat each other, so
    they have no spread, and small differences are certain. Rounding grows with every step, so equal
    losses can't be asked for. At least half of the runs of each side are long enough to count;
    otherwise the spread would often be that of a single run.

    Args:
        reference: losses of each unchanged run, one a step.
        these: losses of each changed run.
        steps: how many unchanged steps take as long as one of these, if a larger batch takes
            longer.
    """
    before = [_every(max(steps, 1), losses) for losses in reference]
    lengths = [statistics.median_low(map(len, runs)) if runs else 0 for runs in (before, these)]
    length = min(*lengths, _MOST_LOSSES)
    if length < _FEWEST_LOSSES:
        return "unclear"
    first, second = (
        [losses[:length] for losses in runs if len(losses) >= length] for runs in (before, these)
    )
    if any(not math.isfinite(loss) for losses in second for loss in losses):
        return "worse"
    half = length // 2
    start = statistics.fmean(loss for losses in first for loss in losses[: max(length // 10, 1)])
    ends = [statistics.fmean(losses[half:]) for losses in first]
    learnt = max(start - statistics.fmean(ends), _LEAST_LEARNT * abs(statistics.fmean(ends)))
    matters = _MATTERS * learnt + max(ends) - min(ends)
    apart = [b - a for a, b in zip(_mean(first)[half:], _mean(second)[half:], strict=True)]
    found = paired_difference(_every(max(len(apart) / _PARTS, 1), apart), WHOLE)
    if found.low is None or found.high is None:
        return "unclear"
    if found.low > 0 and found.value > matters:
        return "worse"
    if found.high < 0 and found.value < -matters:
        return "better"
    return "same" if found.low >= -2 * matters and found.high <= 2 * matters else "unclear"


def _every(steps: float, losses: Sequence[float]) -> list[float]:
    """Return the mean of every ``steps`` losses."""
    edges = [round(number * steps) for number in range(int(len(losses) / steps) + 1)]
    return [statistics.fmean(losses[a:b]) for a, b in itertools.pairwise(edges)]


def _mean(runs: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.fmean(losses) for losses in zip(*runs, strict=True)]
