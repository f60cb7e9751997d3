"""What to do about the largest cause, and the most that you can gain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainmark.analysis.attribution import (
    FAST,
    LARGER,
    Attribution,
    Cause,
    Dissection,
    Share,
    speedup,
)
from trainmark.analysis.statistics import Estimate

WORDS: dict[Cause, tuple[str, str]] = {
    "threads": ("idle cores", "Use all cores: leave out --threads."),
    "epoch": (
        "work before the first step of an epoch: shuffling, creating iterators",
        "Make epochs longer: repeat the data, or pass over it several times.",
    ),
    "fetch": (
        "reading results on the host in every step, which waits for the device",
        "Keep losses on the device, and read them once per epoch.",
    ),
    "input": (
        "preparing batches on the host",
        "Prepare the dataset once, keep it in memory as one array, and index the batches.",
    ),
    "copy": ("copying batches to the device", "Keep the whole dataset on the device."),
    "optimizer": (
        "the optimiser's update",
        "Use the framework's fused or compiled optimiser, which passes over the weights once.",
    ),
    "attention": (
        "attention, with its projections",
        "Use the framework's fused attention, or a shorter context.",
    ),
    "norms": ("normalisation layers", "Compile the network, which fuses these layers with others."),
    "embedding": (
        "token and position embeddings and their gradients",
        "Use a lower precision (--precision).",
    ),
    "memory": (
        "memory-bound operations: activations, dropout, pooling, the loss",
        "Compile the network, which fuses these operations.",
    ),
    "dispatch": (
        "the overhead of launching operations",
        "The operations are too small: compile or capture the step, or use a larger batch.",
    ),
    "compute": (
        "matrix products and convolutions, at the device's measured peak",
        "Only a faster device or a lower precision (--precision) would help.",
    ),
    "shapes": (
        "matrix products and convolutions whose shapes keep them below the device's peak",
        "Use a larger batch or wider layers, in multiples of 64.",
    ),
    "evaluation": ("evaluation on the test set", "Evaluate less often."),
    "compile": (
        "compilation",
        "It happens once: train longer, or keep the framework's compilation cache.",
    ),
}
"""The meaning of each cause, and the advice if no remedy was measured."""

_NOT_BY_STYLE: tuple[Cause, ...] = ("threads", "compute", "evaluation", "compile")
"""Causes that the style ``fast`` does not reduce."""
_BY_BATCH: tuple[Cause, ...] = ("dispatch", "optimizer", "attention", "shapes")
"""Causes whose share a larger batch reduces."""
_WORTH = 1.02
"""Smallest speed-up worth advising."""


@dataclass(frozen=True)
class Advice:
    """One thing to do.

    Args:
        do: the advice, as a sentence.
        promise: the largest speed-up to expect.
        cause: the cause that it reduces.
        measured: whether the promise was timed, rather than computed by removing the cause.
        style, batch: the change in trainmark's own terms, if there is one.
        fixed: for a larger batch, the share of a step that does not depend on the number of
            examples.
    """

    do: str
    promise: float
    low: float | None
    high: float | None
    cause: Cause
    measured: bool
    style: str | None = None
    batch: int | None = None
    fixed: float | None = None


def advise(found: Dissection, attribution: Attribution, recipe: str = "") -> tuple[Advice, ...]:
    """Return advice on the largest cause that can be reduced: timed advice first, then the best.

    Args:
        recipe: path of the script that shows the style ``fast`` of this backend; empty if there is
            none.
    """
    if largest_cause(attribution) is None:
        return ()
    every = (
        tuple(_against(share, found, recipe)) for share in attribution.shares if _is_certain(share)
    )
    return next(filter(None, every), ())


def largest_cause(attribution: Attribution) -> Share | None:
    """Return the largest share of a step, if it exceeds the noise and the unexplained share."""
    certain = filter(_is_certain, attribution.shares)
    share = max(certain, key=lambda share: share.share, default=None)
    return None if share is None or share.share <= abs(attribution.unexplained.value) else share


def _is_certain(share: Share) -> bool:
    return not share.on_top and (share.low is None or share.low > 0)


def _against(largest: Share, found: Dissection, recipe: str) -> Iterator[Advice]:
    cause = largest.cause
    measured = []
    if cause not in _NOT_BY_STYLE and FAST in found.variants:
        shown = f" (see {recipe})" if recipe else ""
        do = (
            f"Train like --style fast{shown}: keep the prepared data on the device, and the "
            "host out of the loop."
        )
        measured.append(_timed(do, cause, speedup(found, FAST), style="fast"))
    if cause in _BY_BATCH and LARGER in found.variants:
        size = found.batch * found.larger
        do = (
            f"Use a batch of {size:,} instead of {found.batch:,}. This changes learning, so "
            "check the accuracy."
        )
        ratio = speedup(found, LARGER, found.larger)
        # A step of n examples takes f + n·e seconds, so the ratio of two sizes gives the share of
        # f in the smaller one.
        fixed = (1 - 1 / ratio.value) * found.larger / (found.larger - 1)
        measured.append(_timed(do, cause, ratio, batch=size, fixed=min(fixed, 1.0)))
    worth_it = [each for each in measured if each.promise >= _WORTH]
    yield from sorted(worth_it, key=lambda each: -each.promise)
    if cause != "compute" and largest.share > 1 - 1 / _WORTH:
        # With noise, one cause can exceed a whole step.
        promise = 1 / (1 - min(largest.share, 0.99))
        low = _without(largest.low)
        high = _without(largest.high)
        yield Advice(WORDS[cause][1], promise, low, high, cause, measured=cause == "threads")


def _without(share: float | None) -> float | None:
    """Return the speed-up of a step without this share of it."""
    return None if share is None else 1 / (1 - min(share, 0.999))


def _timed(do: str, cause: Cause, ratio: Estimate, **change: Any) -> Advice:
    return Advice(do, ratio.value, ratio.low, ratio.high, cause, measured=True, **change)
