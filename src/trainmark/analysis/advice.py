"""What to do about the largest cause, and what that would buy at most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainmark.analysis.attribution import FAST, LARGER, Attribution, Cause, Dissection, Share, speedup
from trainmark.analysis.statistics import Estimate

WORDS: dict[Cause, tuple[str, str]] = {
    "threads": ("cores that stand idle", "Let it use all cores: leave --threads out."),
    "epoch": (
        "what an epoch does before its first step: shuffling, making iterators",
        "Let an epoch be longer: several passes over the data, or the data repeated.",
    ),
    "fetch": (
        "reading results on the host in every step, which makes it wait for the device",
        "Keep losses on the device, and read them once an epoch.",
    ),
    "input": (
        "making the batches on the host",
        "Prepare the data set once, keep it in memory as one array, and take batches by index.",
    ),
    "copy": ("copying batches to the device", "Keep the whole data set on the device."),
    "optimizer": (
        "the optimiser's update",
        "Take the framework's fused or compiled optimiser, which goes over the weights once.",
    ),
    "memory": (
        "what moves values and computes little: activations, dropout, normalisation, pooling, the loss",
        "Compile the network, so that such operations are fused with their neighbours.",
    ),
    "dispatch": (
        "starting operations, whatever their size",
        "Compile or capture the step, or take a larger batch: each operation is too small.",
    ),
    "compute": (
        "the products and convolutions themselves, at the device's measured peak",
        "Only a faster device or fewer bits (--precision) would help.",
    ),
    "shapes": (
        "products and convolutions whose shapes keep them below the device's peak",
        "Take a larger batch or wider layers, with sides that are multiples of 64.",
    ),
    "evaluation": ("looking at the test set", "Evaluate more rarely."),
    "compile": ("compilation", "It is paid once: train longer, or keep the framework's compilation cache."),
}
"""What each cause is, and what can be done about it where nothing has been measured that does it."""

_BY_STYLE: tuple[Cause, ...] = ("epoch", "fetch", "input", "copy", "dispatch", "optimizer", "memory", "shapes")
_BY_BATCH: tuple[Cause, ...] = ("dispatch", "optimizer", "shapes")
_WORTH = 1.02
"""A speed-up that is smaller is not promised."""


@dataclass(frozen=True)
class Advice:
    """One thing to do.

    Args:
        do: for people.
        promise: how many times faster training becomes at most.
        cause: what it is against.
        measured: the promise is of a training that was timed, not of one that is without the cause.
        style, batch: what to change in trainmark's own terms, where that can be said.
        fixed: of a larger batch, the share of a step that costs the same however many examples it has.
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
    """What to do about the largest cause that can be reduced, the best first; what was timed comes first.

    Args:
        recipe: path of the script that shows the style ``fast`` of this backend; empty where there is none.
    """
    if largest_cause(attribution) is None:
        return ()
    for share in attribution.shares:
        if _is_certain(share) and (against := tuple(_against(share, found, recipe))):
            return against
    return ()


def largest_cause(attribution: Attribution) -> Share | None:
    """The largest share of a step that is more than noise, and than what is unexplained; None where no cause is."""
    share = max(
        (share for share in attribution.shares if _is_certain(share)), key=lambda share: share.share, default=None
    )
    return None if share is None or share.share <= abs(attribution.unexplained.value) else share


def _is_certain(share: Share) -> bool:
    return not share.on_top and (share.low is None or share.low > 0)


def _against(largest: Share, found: Dissection, recipe: str) -> Iterator[Advice]:
    cause = largest.cause
    measured = []
    if cause in _BY_STYLE and FAST in found.variants:
        shown = f" (see {recipe})" if recipe else ""
        do = f"Train as --style fast does{shown}: keep the prepared data on the device and the loop free of the host."
        measured.append(_timed(do, cause, speedup(found, FAST), style="fast"))
    if cause in _BY_BATCH and LARGER in found.variants:
        size = found.batch * found.larger
        do = f"Take {size:,} examples a step instead of {found.batch:,}; learning changes with it, so look at accuracy."
        ratio = speedup(found, LARGER, found.larger)
        # A step of n examples takes f + n·e seconds: the ratio of two sizes tells which part f is of the smaller one.
        fixed = (1 - 1 / ratio.value) * found.larger / (found.larger - 1)
        measured.append(_timed(do, cause, ratio, batch=size, fixed=min(fixed, 1.0)))
    yield from sorted((each for each in measured if each.promise >= _WORTH), key=lambda each: -each.promise)
    if cause != "compute" and 1 - 1 / _WORTH < largest.share < 1:
        low, high = (None if bound is None else 1 / (1 - min(bound, 0.999)) for bound in (largest.low, largest.high))
        yield Advice(WORDS[cause][1], 1 / (1 - largest.share), low, high, cause, measured=cause == "threads")


def _timed(do: str, cause: Cause, ratio: Estimate, **change: Any) -> Advice:
    return Advice(do, ratio.value, ratio.low, ratio.high, cause, measured=True, **change)
