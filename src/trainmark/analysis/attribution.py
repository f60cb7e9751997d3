"""A step's time divided among causes, from the times of variants of the step that lack one thing after the other.

Each variant lacks what the one before it lacks, and one thing more; what they differ by is that thing's cost, so the
costs add up to the step. What is left at the end are products and convolutions: the measured peak says how fast those
FLOPs could be, the same products alone how fast their shapes let them be. Nothing else is assumed, and what does not
fit is *unexplained*.

Lower quartiles over the rounds of whatever was timed, since others on the machine only ever add time; the interval of a
share is that of its bootstrap over rounds (Efron 1979), all variants of a round together.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar, get_args

from trainmark.analysis.statistics import CONFIDENCE, Estimate, lower_quartile
from trainmark.record.record import Record

Cause = Literal[
    "threads",
    "epoch",
    "fetch",
    "input",
    "copy",
    "optimizer",
    "memory",
    "dispatch",
    "compute",
    "shapes",
    "evaluation",
    "compile",
]
CAUSES: tuple[Cause, ...] = get_args(Cause)

WHOLE, LARGER, FAST = "whole", "larger batch", "the style fast"
PARTS: tuple[Literal["fetch", "input", "copy", "optimizer"], ...] = ("fetch", "input", "copy", "optimizer")
CAPTURED = "captured"
PLAIN = "without elementwise layers and loss"
SHRUNK, SHRUNK_PLAIN = "shrunk", "shrunk without elementwise layers and loss"
PRODUCTS, EMPTY, PEAK = "products", "empty", "peak"

RESAMPLES = 1_000

_T = TypeVar("_T")
_OF_A_PROBE = (0, 1)
_Stretches = Mapping[tuple[str, int], float]
"""Seconds of so many steps of a variant."""
Round = Mapping[str, float]
"""Seconds of a step of each variant; of all ``products`` of a step, of as many empty ones, and of the peak's one."""


@dataclass(frozen=True)
class Dissection:
    """What was measured of one side.

    Args:
        rounds: neighbours in time; a step's seconds are those of one more step in an epoch.
        starts: seconds that an epoch takes before its steps, of the variants of each round.
        lengths: steps of the short and of the long stretch that were timed of each variant in each round.
        steps_per_epoch: as it is scheduled, over which its start is spread.
        flops: of a step.
        peak_flops: of the one product that is called ``peak``; None where none was measured.
        batch: examples a step.
        larger: how many times larger the batch of the variant ``larger batch`` is.
        evaluations: seconds of each look at the test set.
        compile_seconds: None where nothing was compiled.
        steps: of the training as it is scheduled.
        looks: how often it evaluates.
        accelerator: the device computes while the host goes on.
        dropped: variants that could not be had, and why.
        threads_ratio: seconds with all cores / seconds as asked; None where all were asked for.
    """

    rounds: tuple[Round, ...]
    starts: tuple[Round, ...]
    steps_per_epoch: int
    flops: float
    peak_flops: float | None
    batch: int
    larger: int
    evaluations: tuple[float, ...]
    compile_seconds: float | None
    steps: int
    looks: int
    accelerator: bool
    dropped: Mapping[str, str]
    lengths: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    threads_ratio: Estimate | None = None


@dataclass(frozen=True)
class Share:
    """A cause's share of a steady step, a fraction, with its interval; ``on_top`` is beyond the step itself."""

    cause: Cause
    share: float
    low: float | None
    high: float | None
    on_top: bool = False


@dataclass(frozen=True)
class Attribution:
    """Where the time of a step goes.

    Args:
        step_seconds: of a steady step.
        shares: those that could be measured, the largest first, then what comes on top.
        unexplained: of the step.
        unknown: causes that could not be measured here.
    """

    step_seconds: Estimate
    shares: tuple[Share, ...]
    unexplained: Estimate
    unknown: tuple[Cause, ...]


def attribute(found: Dissection) -> Attribution:
    """Divide the step of ``found``."""
    stretches = _stretches(found)
    splits = [_split(*_typical(each, found), found) for each in (stretches, *_resamples(stretches))]
    step = _estimate([split.step for split in splits])
    # Where only a part of the cores was asked for, all that follows was measured with all of them.
    scale = 1.0 if found.threads_ratio is None else found.threads_ratio.value
    shares = [
        _share(cause, _scaled(_estimate([split.causes[cause] / split.step for split in splits]), scale))
        for cause in splits[0].causes
    ]
    if found.threads_ratio is not None:
        shares.append(_share("threads", _scaled(found.threads_ratio, -1.0, 1.0)))
    shares.sort(key=lambda share: -share.share)
    if found.threads_ratio is None:  # else what comes on top was measured with other cores than the step
        shares += _on_top(found, step.value)
    unexplained = _estimate([1 - sum(split.causes.values()) / split.step for split in splits])
    known = {"threads", *(share.cause for share in shares)}
    return Attribution(
        step_seconds=_scaled(step, 1 / scale),
        shares=tuple(shares),
        unexplained=_scaled(unexplained, scale),
        unknown=tuple(cause for cause in CAUSES if cause not in known),
    )


def from_record(record: Record) -> Attribution | None:
    """What a record alone tells: the share that the products need at the measured peak, evaluation and compilation.

    None where no epoch was finished.
    """
    steady = record.epochs[1:] or record.epochs
    if not steady:
        return None
    step = statistics.median(epoch.seconds / epoch.steps for epoch in steady)
    steps = sum(epoch.steps for epoch in record.epochs)
    shares = []
    peak = record.peaks.matmul_flops_per_second if record.peaks else None
    if peak:
        flops = record.model.training_flops_per_example * steady[0].examples / steady[0].steps
        shares.append(Share("compute", flops / peak / step, None, None))
    evaluated = [epoch.evaluation_seconds for epoch in record.epochs if epoch.evaluation_seconds is not None]
    beside: dict[Cause, float | None] = {
        "evaluation": sum(evaluated) if evaluated else None,
        "compile": record.compile_seconds,
    }
    for cause, seconds in beside.items():
        if seconds is not None:
            shares.append(Share(cause, seconds / steps / step, None, None, on_top=True))
    known = {"threads", *(share.cause for share in shares)}
    return Attribution(
        step_seconds=Estimate(step, None, None),
        shares=tuple(shares),
        unexplained=Estimate(1 - sum(share.share for share in shares if not share.on_top), None, None),
        unknown=tuple(cause for cause in CAUSES if cause not in known),
    )


def speedup(found: Dissection, name: str, times: int = 1) -> Estimate:
    """How many times faster the variant ``name`` trains, each of whose steps has ``times`` as many examples."""
    stretches, spread = _stretches(found), found.steps_per_epoch

    def ratio(rounds: Sequence[_Stretches]) -> float:
        steps, starts = _typical(rounds, found)
        return (steps[WHOLE] + starts[WHOLE] / spread) / (steps[name] / times + starts[name] / spread)

    return _estimate([ratio(each) for each in (stretches, *_resamples(stretches))])


@dataclass(frozen=True)
class _Split:
    step: float
    causes: dict[Cause, float]


def _split(seconds: Round, starts: Round, found: Dissection) -> _Split:
    """Seconds of each cause in a step."""
    causes: dict[Cause, float] = {"epoch": starts[WHOLE] / found.steps_per_epoch}
    left = seconds[WHOLE]
    for part in PARTS:
        without = seconds.get(f"without {part}")
        if without is not None:
            causes[part] = left - without
            left = without
    if CAPTURED in seconds:
        causes["dispatch"], left = left - seconds[CAPTURED], seconds[CAPTURED]
    elif SHRUNK in seconds:
        causes["dispatch"] = seconds[SHRUNK]
        left -= seconds[SHRUNK]
    if PLAIN in seconds and SHRUNK in seconds and SHRUNK_PLAIN in seconds:
        # As without these layers there is less to launch, too, which has been counted already.
        plain = seconds[PLAIN] - seconds[SHRUNK_PLAIN]
        causes["memory"], left = left - plain, plain
    elif PLAIN in seconds and found.accelerator and CAPTURED not in found.dropped:
        causes["memory"], left = left - seconds[PLAIN], seconds[PLAIN]
    if PEAK in seconds and found.peak_flops:
        compute = min(found.flops * seconds[PEAK] / found.peak_flops, max(left, 0.0))
        causes["compute"] = compute
        if PRODUCTS in seconds:
            alone = seconds[PRODUCTS] - seconds[EMPTY]
            causes["shapes"] = max(alone - compute, 0.0)
    return _Split(seconds[WHOLE] + causes["epoch"], causes)


def _on_top(found: Dissection, step: float) -> list[Share]:
    """Evaluation and compilation, spread over the steps of the training as it is scheduled."""
    shares = []
    if found.evaluations:
        each = found.looks / found.steps / step
        low, high = (bound(found.evaluations) * each for bound in (min, max))
        shares.append(Share("evaluation", statistics.median(found.evaluations) * each, low, high, on_top=True))
    if found.compile_seconds is not None:
        shares.append(Share("compile", found.compile_seconds / found.steps / step, None, None, on_top=True))
    return shares


def _stretches(found: Dissection) -> list[_Stretches]:
    """What was timed in each round."""
    return [
        {
            (name, length): starts.get(name, 0.0) + length * step
            for name, step in steps.items()
            for length in found.lengths.get(name, _OF_A_PROBE)
        }
        for steps, starts in zip(found.rounds, found.starts, strict=True)
    ]


def _typical(rounds: Sequence[_Stretches], found: Dissection) -> tuple[Round, Round]:
    """Seconds of a step and of an epoch's start, of each variant in these rounds."""
    seconds = {each: lower_quartile([stretches[each] for stretches in rounds]) for each in rounds[0]}
    steps, starts = {}, {}
    for name in found.rounds[0]:
        few, many = found.lengths.get(name, _OF_A_PROBE)
        steps[name] = (seconds[name, many] - seconds[name, few]) / (many - few)
        starts[name] = seconds[name, few] - few * steps[name]
    return steps, starts


def _resamples(rounds: Sequence[_T]) -> Iterator[Sequence[_T]]:
    rng = random.Random(0)
    return (rng.choices(rounds, k=len(rounds)) for _ in range(RESAMPLES))


def _estimate(values: Sequence[float]) -> Estimate:
    """The first value, with the middle 95 % of the others, which are what it was in the resamples."""
    value, *others = values
    others.sort()
    outside = int((1 - CONFIDENCE) / 2 * len(others))
    return Estimate(value, others[outside], others[-1 - outside])


def _scaled(estimate: Estimate, factor: float, offset: float = 0.0) -> Estimate:
    """``offset + factor · estimate``."""
    bounds = [None if bound is None else offset + factor * bound for bound in (estimate.low, estimate.high)]
    low, high = bounds if factor >= 0 else bounds[::-1]
    return Estimate(offset + factor * estimate.value, low, high)


def _share(cause: Cause, estimate: Estimate) -> Share:
    return Share(cause, estimate.value, estimate.low, estimate.high)
