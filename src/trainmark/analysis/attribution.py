"""Attribute a step's time to causes by ablation: time variants with ever fewer components.

Each variant omits one component more than the previous one; the difference is that component's
cost, so the costs add up to the step. Embeddings, matrix products and convolutions remain: a
network of embeddings alone gives the time of those, the measured peak that of the FLOPs, and timing
the same products alone gives the cost of their shapes. Nothing else is assumed, and the remainder
is *unexplained*.

Times are lower quartiles over rounds, since other processes only ever add time, averaged over
processes, since memory layout varies between processes. The interval of a share is a bootstrap over
processes, each with all its rounds (Davison and Hinkley 1997, section 3.8), for all variants
together. Since there are few processes, each sample draws one process less than there are, or the
variance would be too small (Rao and Wu 1988), and the interval is widened by the ratio of Student's
t to the normal quantile. With only one process, rounds are drawn (Efron 1979), and the interval
shows only their spread.
"""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from trainmark.analysis.statistics import CONFIDENCE, Estimate, lower_quartile
from trainmark.analysis.student import t_quantile
from trainmark.record.record import Record

Cause = Literal[
    "threads",
    "epoch",
    "fetch",
    "input",
    "copy",
    "optimizer",
    "attention",
    "norms",
    "embedding",
    "memory",
    "dispatch",
    "compute",
    "shapes",
    "evaluation",
    "compile",
]
CAUSES: tuple[Cause, ...] = get_args(Cause)

WHOLE = "whole"
"""The variant with the whole step."""
LARGER = "larger batch"
"""The variant with a batch that is several times as large."""
FAST = "the style fast"
"""The variant that trains like the style ``fast``."""
PARTS: tuple[Literal["fetch", "input", "copy", "optimizer"], ...] = (
    "fetch",
    "input",
    "copy",
    "optimizer",
)
"""What is removed first, each in addition to the previous ones."""
CAPTURED = "captured"
"""The variant whose step is captured, so that the host launches no operations."""
SHRUNK = "shrunk"
"""The variant with a network so small that launching its operations is all that takes time."""
LAYERS: tuple[Cause, ...] = ("attention", "norms", "memory", "embedding")
"""What is removed after the parts, each in addition to the previous ones.

The last variant has nothing but the embeddings.
"""
_OF_SOME_NETWORKS: tuple[Cause, ...] = ("attention", "norms", "embedding")
"""Causes that many networks don't have, so that they are not unknown there."""
PRODUCTS = "products"
"""The matrix products and convolutions of a step, alone."""
EMPTY = "empty"
"""An equal number of empty operations, whose launches take as long as those of ``products``."""
PEAK = "peak"
"""The matrix product that measures the peak."""

RESAMPLES = 1_000
"""Number of bootstrap samples: 25 of them lie outside an interval on each side."""

_OF_A_PROBE = (0, 1)
"""Lengths of the stretches of a variant that is timed alone: nothing, and one step."""
_Stretches = Mapping[tuple[str, int], float]
"""Seconds by variant and number of steps."""
Round = Mapping[str, float]
"""Seconds per step of each variant, of its ``products``, of as many empty ones, of the peak."""


@dataclass(frozen=True)
class Sitting:
    """The measurements of one process.

    Args:
        rounds: seconds per step of each round, that is of one more step in an epoch.
        starts: seconds before the steps of an epoch, by variant, of each round.
        lengths: steps of the short and of the long stretch timed in each round, by variant.
    """

    rounds: tuple[Round, ...]
    starts: tuple[Round, ...]
    lengths: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Dissection:
    """All measurements of one side.

    Args:
        sittings: the measurements of each process.
        steps_per_epoch: scheduled steps, over which an epoch's start is averaged.
        flops: FLOPs of a step.
        peak_flops: FLOPs of the product ``peak``; None if it was not measured.
        batch: examples per step.
        larger: how many times larger the batch of the variant ``larger batch`` is.
        evaluations: seconds of each evaluation.
        compile_seconds: None if nothing was compiled.
        steps: scheduled steps of the training.
        number_of_evaluations: how often an epoch, or the whole training, is evaluated.
        accelerator: whether the device computes asynchronously.
        dropped: variants that could not be measured, and why.
        threads_ratio: seconds with all cores / seconds as requested; None if all were requested.
    """

    sittings: tuple[Sitting, ...]
    steps_per_epoch: int
    flops: float
    peak_flops: float | None
    batch: int
    larger: int
    evaluations: tuple[float, ...]
    compile_seconds: float | None
    steps: int
    number_of_evaluations: int
    accelerator: bool
    dropped: Mapping[str, str]
    threads_ratio: Estimate | None = None

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The rounds of all sittings."""
        return tuple(itertools.chain.from_iterable(sitting.rounds for sitting in self.sittings))

    @property
    def variants(self) -> list[str]:
        """The variants timed in every sitting."""
        first, *others = (sitting.rounds[0] for sitting in self.sittings)
        return [name for name in first if all(name in each for each in others)]


@dataclass(frozen=True)
class Share:
    """A cause's share of a steady step, as a fraction, with its interval.

    Args:
        on_top: whether this is time outside the step.
    """

    cause: Cause
    share: float
    low: float | None
    high: float | None
    on_top: bool = False


@dataclass(frozen=True)
class Attribution:
    """Where the time of a step goes.

    Args:
        step_seconds: duration of a steady step.
        shares: measured shares, the largest first, then those on top.
        unexplained: unexplained share of the step.
    """

    step_seconds: Estimate
    shares: tuple[Share, ...]
    unexplained: Estimate

    @property
    def unknown(self) -> tuple[Cause, ...]:
        """Causes that could not be measured here."""
        known = {"threads", *_OF_SOME_NETWORKS, *(share.cause for share in self.shares)}
        return tuple(cause for cause in CAUSES if cause not in known)


def attribute(found: Dissection) -> Attribution:
    """Attribute the step time of ``found`` to causes."""
    splits = [_split(*each, found) for each in _typical(found)]
    few = _stretch(len(found.sittings))
    step = _estimate([seconds for seconds, _ in splits], few)
    # If only some of the cores were requested, the variants were still measured with all of them.
    threads = found.threads_ratio
    scale = 1.0 if threads is None else threads.value
    shares = []
    for cause in splits[0][1]:
        of_step = [scale * causes[cause] / seconds for seconds, causes in splits]
        shares.append(_share(cause, _estimate(of_step, few)))
    if threads is not None:
        shares.append(_share("threads", threads.mapped(_complement)))
    shares.sort(key=lambda share: -share.share)
    # With threads, the shares on top would refer to a different number of cores.
    if threads is None:
        shares += _on_top(found, step.value)
    left = [scale * (1 - sum(causes.values()) / seconds) for seconds, causes in splits]
    as_requested = step.mapped(lambda seconds: seconds / scale)
    return Attribution(as_requested, tuple(shares), _estimate(left, few))


def _complement(share: float) -> float:
    return 1 - share


def from_record(record: Record) -> Attribution | None:
    """Attribute from a record alone; None if no epoch was finished.

    It has the share of the products at the measured peak, of evaluation and of compilation.
    """
    done = [epoch for epoch in record.epochs if (epoch.steps or 0) > 0 and epoch.seconds > 0]
    steady = [(epoch, epoch.steps or 0) for epoch in done[1:] or done]
    if not steady:
        return None
    step = statistics.median(epoch.seconds / steps for epoch, steps in steady)
    steps = sum(epoch.steps or 0 for epoch in done)
    shares = []
    peak = record.peaks.matmul_flops_per_second if record.peaks else None
    first, steps_of_first = steady[0]
    if peak and peak > 0 and record.model and first.examples:
        flops = record.model.training_flops_per_example * first.examples / steps_of_first
        shares.append(Share("compute", flops / peak / step, None, None))
    evaluations = (epoch.evaluation_seconds for epoch in record.epochs)
    evaluated = [seconds for seconds in evaluations if seconds is not None]
    unexplained = 1 - sum(share.share for share in shares)
    if evaluated:
        shares.append(Share("evaluation", sum(evaluated) / steps / step, None, None, on_top=True))
    if record.compile_seconds is not None:
        share = record.compile_seconds / steps / step
        shares.append(Share("compile", share, None, None, on_top=True))
    return Attribution(Estimate(step, None, None), tuple(shares), Estimate(unexplained, None, None))


def speedup(found: Dissection, name: str, times: int = 1) -> Estimate:
    """Return how many times as fast a variant trains as the whole step.

    Args:
        found: the measurements.
        name: the variant.
        times: how many times as many examples its steps have.
    """
    spread = found.steps_per_epoch

    def ratio(steps: Round, starts: Round) -> float:
        before = steps[WHOLE] + starts[WHOLE] / spread
        after = steps[name] / times + starts[name] / spread
        return before / after

    return _estimate([ratio(*each) for each in _typical(found)], _stretch(len(found.sittings)))


def _split(seconds: Round, starts: Round, found: Dissection) -> tuple[float, dict[Cause, float]]:
    """Return the seconds of a step, and of each cause in it."""
    causes: dict[Cause, float] = {"epoch": starts[WHOLE] / found.steps_per_epoch}
    left = seconds[WHOLE]
    for part in PARTS:
        without = seconds.get(f"without {part}")
        if without is not None:
            causes[part] = left - without
            left = without
    if CAPTURED in seconds:
        causes["dispatch"] = left - seconds[CAPTURED]
        left = seconds[CAPTURED]
    elif SHRUNK in seconds:
        causes["dispatch"] = seconds[SHRUNK]
        left -= seconds[SHRUNK]
    for cause in LAYERS:
        rest = _without_launches(f"ablation of {cause}", seconds, found)
        if rest is not None:
            causes[cause] = rest if cause == "embedding" else left - rest
            left -= causes[cause]
    if PEAK in seconds and found.peak_flops:
        compute = min(found.flops * seconds[PEAK] / found.peak_flops, max(left, 0.0))
        causes["compute"] = compute
        if PRODUCTS in seconds:
            alone = seconds[PRODUCTS] - seconds[EMPTY]
            causes["shapes"] = max(alone - compute, 0.0)
    return seconds[WHOLE] + causes["epoch"], causes


def _without_launches(name: str, seconds: Round, found: Dissection) -> float | None:
    """Return the seconds of a variant without its launches, which are counted already.

    The result is None if the launches, or the variant, are unknown.
    """
    unknown = CAPTURED in found.dropped if found.accelerator else SHRUNK not in seconds
    launches = seconds.get(f"{SHRUNK} {name}", 0.0 if found.accelerator else None)
    if unknown or launches is None or name not in seconds:
        return None
    return seconds[name] - launches


def _on_top(found: Dissection, step: float) -> Iterator[Share]:
    """Yield the shares of evaluation and compilation, averaged over all scheduled steps."""
    if found.evaluations:
        each = found.number_of_evaluations / found.steps / step
        share = statistics.median(found.evaluations) * each
        low = min(found.evaluations) * each
        high = max(found.evaluations) * each
        yield Share("evaluation", share, low, high, on_top=True)
    if found.compile_seconds is not None:
        yield Share("compile", found.compile_seconds / found.steps / step, None, None, on_top=True)


def _typical(found: Dissection) -> Iterator[tuple[Round, Round]]:
    """Yield the seconds of a step and of an epoch's start: as measured, then of every resample."""
    variants = found.variants
    measured = [(sitting, _stretches(sitting, variants)) for sitting in found.sittings]
    typical = [_of_sitting(sitting, stretches, variants) for sitting, stretches in measured]
    yield _mean(typical)
    rng = random.Random(0)
    for _ in range(RESAMPLES):
        if len(measured) > 1:
            yield _mean(rng.choices(typical, k=len(typical) - 1))
        else:
            ((sitting, rounds),) = measured
            yield _of_sitting(sitting, rng.choices(rounds, k=len(rounds)), variants)


def _stretches(sitting: Sitting, variants: Sequence[str]) -> list[_Stretches]:
    """Return the times of each round's stretches."""
    every: list[_Stretches] = []
    for steps, starts in zip(sitting.rounds, sitting.starts, strict=True):
        seconds = {}
        for name in variants:
            for length in sitting.lengths.get(name, _OF_A_PROBE):
                seconds[name, length] = starts.get(name, 0.0) + length * steps[name]
        every.append(seconds)
    return every


def _of_sitting(
    sitting: Sitting, rounds: Sequence[_Stretches], variants: Sequence[str]
) -> tuple[Round, Round]:
    """Return the seconds of a step and of an epoch's start by variant, from these rounds."""
    seconds = {
        each: lower_quartile([stretches[each] for stretches in rounds]) for each in rounds[0]
    }
    steps = {}
    starts = {}
    for name in variants:
        few, many = sitting.lengths.get(name, _OF_A_PROBE)
        steps[name] = (seconds[name, many] - seconds[name, few]) / (many - few)
        starts[name] = seconds[name, few] - few * steps[name]
    return steps, starts


def _mean(sittings: Sequence[tuple[Round, Round]]) -> tuple[Round, Round]:
    """Return the means over sittings, of the steps and of the starts of epochs."""
    return _mean_round([steps for steps, _ in sittings]), _mean_round(
        [each for _, each in sittings]
    )


def _mean_round(rounds: Sequence[Round]) -> Round:
    return {name: statistics.fmean(each[name] for each in rounds) for name in rounds[0]}


def _estimate(values: Sequence[float], stretch: float) -> Estimate:
    """Return the first value, with the middle 95 % of the others as its interval.

    Args:
        values: the value, then its resamples.
        stretch: widens the interval.
    """
    value, *others = values
    others.sort()
    outside = int((1 - CONFIDENCE) / 2 * len(others))
    low = others[outside]
    high = others[-1 - outside]
    return Estimate(value, value - stretch * (value - low), value + stretch * (high - value))


def _stretch(sittings: int) -> float:
    """Return the factor that widens an interval from few processes; 1 for a single one."""
    if sittings < 2:
        return 1.0
    normal = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    return t_quantile(CONFIDENCE, sittings - 1) / normal


def _share(cause: Cause, estimate: Estimate) -> Share:
    return Share(cause, estimate.value, estimate.low, estimate.high)
