"""What changes to a user's script give: how much faster is it, and does it learn the same?"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from trainmark.analysis.causes import Found
from trainmark.analysis.experiments import Kind, ScriptPart
from trainmark.analysis.slices import compare_slices
from trainmark.analysis.statistics import WHOLE, Estimate, paired_difference
from trainmark.analysis.work import of_steps
from trainmark.record.record import Record

SMALLEST_GAIN = 1.03
"""Smaller speed-ups are not worth a change."""
SAMPLED = "samples of the running lines"
"""Proof of a finding that no experiment gave; such shares are estimates."""
Curve = Literal["same", "better", "worse", "unclear", "unseen"]
"""How the losses compare; ``unseen`` if they need not fall, as those of a GAN."""

_FEWEST_LOSSES = 8
"""Fewest losses of a run, one per step, for a verdict on learning."""
_MOST_LOSSES = 2_000
"""Maximum number of losses of a run that are compared; records have every step up to this one."""
_PARTS = 8
"""Number of parts of the compared steps.

Their means are compared, since the losses of neighbouring steps depend on each other.
"""
_MATTERS = 0.1
"""Share of what was learnt so far that a difference of the losses must exceed to matter."""
_LEAST_LEARNT = 0.02
"""Smallest share of the loss that counts as learnt.

Otherwise rounding would matter in a training that stands still.
"""
_PROCESS_NOISE = 0.015
"""Logarithm by which processes of the same training differ; added to intervals from blocks."""
_MANY_ROUNDS = 6
"""Number of rounds from which on they give an interval by themselves, without their blocks."""
_MANY_BLOCKS = 8
"""Number of undisturbed blocks that are enough to leave out the disturbed ones."""
_MUCH_MORE = 2.0
"""Ratio of gains (logarithms) from which on a larger batch comes before all other changes."""
_MOST = 0.5
"""Share of a diagnosis's gain (logarithms) that a change must reach to be named instead of it."""
_QUANTILE = 1.96
_LARGEST_SHARE = 0.98
"""Largest share that samples can show: a few of them may belong to the line next to it."""


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
        cause: the known cause that it is about; None if there is none.
    """

    change: str
    kind: Kind
    part: ScriptPart | None
    speedup: Estimate
    fresh: bool
    learning: Curve
    proof: str
    place: str | None
    memory: float | None = None
    cause: Found | None = None

    @property
    def about(self) -> str:
        """What it is about: a part of the script, or else a cause."""
        return self.part or self.change

    @property
    def promises(self) -> bool:
        """Whether its speed-up can be reached, and is not only a bound.

        A share of samples says how long something takes, but not how long a faster way to do it
        would take.
        """
        return self.proof != SAMPLED or self.cause is None or self.cause.is_removed

    @property
    def wins(self) -> bool:
        """Whether it is certainly faster, and by enough to be worth it."""
        low = self.speedup.low
        return self.speedup.value > SMALLEST_GAIN and low is not None and low > 1

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

    A change to make, or a known cause, comes before the diagnosis of the same part of the script if
    it gives most of what the diagnosis shows. A larger batch makes everything cheaper that happens
    once a step, so it comes before other changes only if they don't explain what it gives, and if
    it learns more in the same time. Among those that win, harmful ones come last.
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
        most = max(_gain(each) for each in usual if each.about == found.about)
        explains = found.kind == "change" and _gain(found) >= _MOST * most
        if found.proof == SAMPLED and found.cause is not None:
            explains = _share(_gain(found)) >= _MOST * _share(most)
        return 0, -most, -_gain(found) - (most if explains else 0.0)

    return sorted(every, key=order)


def sampled(share: float, samples: int) -> Estimate:
    """Return the speed-up if a share of the time were gone, with a 95 % interval (Wilson).

    Args:
        share: share of the samples; it may not be all of them.
        samples: how many there are.
    """
    share = min(share, _LARGEST_SHARE)
    square = _QUANTILE**2 / samples
    middle = (share + square / 2) / (1 + square)
    half = _QUANTILE * math.sqrt(share * (1 - share) / samples + square / (4 * samples))
    half /= 1 + square
    return Estimate(share, middle - half, min(middle + half, _LARGEST_SHARE)).mapped(_without)


def _without(share: float) -> float:
    """Return the speed-up of a step without this share of its time."""
    return 1 / (1 - share)


def candidates(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings from single processes that may win, in the order of :func:`ranked`.

    The process of the unchanged script may have been a fast one; most changes do nothing, so their
    median shows it.
    """
    every = list(findings)
    if not every:
        return []
    middle = min(1.0, statistics.median(each.speedup.value for each in every))

    def scaled(ratio: float) -> float:
        return ratio / middle

    fairer = [replace(each, speedup=each.speedup.mapped(scaled)) for each in every]
    return [each for each in ranked(fairer) if each.speedup.value > SMALLEST_GAIN]


def _share(gain: float) -> float:
    """Return the share of the time that was saved, for the logarithm of a speed-up."""
    return 1 - math.exp(-gain)


def _gain(found: Finding) -> float:
    """Return the gain to rank by.

    For another precision, which may harm a long training, this is only what is certain.
    """
    certain = found.speedup.low if found.part == "precision" else None
    return math.log(certain or found.speedup.value)


def speedup(
    reference: Sequence[Record], these: Sequence[Record], *, per_example: bool = False
) -> Estimate | None:
    """Return the speed-up by slices: over rounds if there are enough of them, else over blocks.

    The interval of a few rounds would be very wide, so theirs is that of their blocks, widened by
    how much processes of the same training usually differ.

    Args:
        per_example: compare the time of an example, for steps of different sizes; by default, that
            of a step.
    """
    if not per_example:
        work = of_steps(reference, these)
        if not work.can_be_compared:
            return None
        reference = work.reference
        these = work.these
    sliced = compare_slices(reference, these)
    if sliced is None:
        return None
    if len(sliced.kept) >= _MANY_ROUNDS:
        return paired_difference(sliced.kept).exponential()
    blocks = list(itertools.chain.from_iterable(sliced.rounds))
    quiet = [block for block in blocks if not block.disturbed]
    if len(quiet) >= _MANY_BLOCKS:
        blocks = quiet
    found = paired_difference([block.log_ratio for block in blocks])
    if found.low is not None and found.high is not None:
        found = Estimate(found.value, found.low - _PROCESS_NOISE, found.high + _PROCESS_NOISE)
    return found.exponential()


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
    length = min(_typical_length(before), _typical_length(these), _MOST_LOSSES)
    if length < _FEWEST_LOSSES:
        return "unclear"
    first = [losses[:length] for losses in before if len(losses) >= length]
    second = [losses[:length] for losses in these if len(losses) >= length]
    if not all(map(math.isfinite, itertools.chain.from_iterable(second))):
        return "worse"
    half = length // 2
    beginnings = (losses[: max(length // 10, 1)] for losses in first)
    start = statistics.fmean(itertools.chain.from_iterable(beginnings))
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


def _typical_length(runs: Sequence[Sequence[float]]) -> int:
    return statistics.median_low(map(len, runs)) if runs else 0


def _every(steps: float, losses: Sequence[float]) -> list[float]:
    """Return the mean of every ``steps`` losses."""
    edges = [round(number * steps) for number in range(int(len(losses) / steps) + 1)]
    return [statistics.fmean(losses[a:b]) for a, b in itertools.pairwise(edges)]


def _mean(runs: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.fmean(losses) for losses in zip(*runs, strict=True)]
