"""Diagnose why a training diverged or did not learn, from a replay that inspects every tensor."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

from trainmark.record.inspection import StepInspection
from trainmark.workload.precision import PRECISIONS

Failure = Literal[
    "labels-out-of-range",
    "nan-in-data",
    "softmax-underflow",
    "precision-overflow",
    "nothing-is-training",
    "dead-relus",
    "learning-rate",
    "not-found",
]

UNDERFLOW_GAP = 88.72
"""Largest safe gap between two logits.

Beyond it, 1/e^-gap overflows float32, and beyond 103.9, e^-gap is 0.
"""
_LABEL_REFUSED = re.compile(
    r"(target|label|class)\b.*\b(out of (bounds|range)|outside)", re.IGNORECASE
)
"""Frameworks' error messages for a label out of range."""
_INDEX_REFUSED = re.compile(r"index (\d+) is out of bounds for dimension \d+ with size (\d+)")
"""PyTorch's error message for any index; it is about a label if the size is that of the classes."""
_TWO_STAGE = "softmax-then-log"
"""The loss that computes probabilities before their logarithm, which can underflow."""
_MOSTLY = 0.9
"""Share of dead units from which on a layer counts as dead."""
_LARGE_MOVE = 1.0
"""A step that changes a weight tensor by as much as its largest value is too large."""
_HIGHER = 1.1
"""Ratio of the last losses to the first one from which on the loss counts as risen."""
_SMALL_MOVE = 1e-7
"""The last bit of float32, relative to the largest weight."""


@dataclass(frozen=True)
class Replay:
    """What the replay of a run showed.

    Args:
        losses: losses of the repeated steps.
        failed_at: the first step whose loss is not finite.
        opened: the first step, the one before the failure (or the last), and the failure.
        loss_kind, precision, classes: properties of the run.
        stopped: why the process ended early, if it did.
    """

    losses: tuple[float, ...]
    failed_at: int | None
    opened: tuple[StepInspection, ...]
    loss_kind: str
    precision: str
    classes: int
    stopped: str | None = None


@dataclass(frozen=True)
class Diagnosis:
    """The cause of a failure, and what to do.

    Args:
        cause: the cause, from a closed list.
        step: the first step that shows it, from 0.
        where: the first tensor that shows it: kind and layer.
        evidence: sentences with figures.
        do: what to do.
    """

    cause: Failure
    step: int | None
    where: str | None
    evidence: tuple[str, ...]
    do: str


DO: dict[Failure, str] = {
    "labels-out-of-range": "Give the last layer one output per class, and count labels from 0.",
    "nan-in-data": "Check how the input is prepared: it contains values that are not finite.",
    "softmax-underflow": "Compute the loss directly from the logits (a fused softmax "
    "cross-entropy).",
    "precision-overflow": "Scale the loss, or train in bf16 or fp32, whose range is wider.",
    "nothing-is-training": "Check that the optimiser is given these weights, and that they get a "
    "gradient.",
    "dead-relus": "Use a smaller learning rate, or another initialisation or activation.",
    "learning-rate": "Use a learning rate ten times smaller.",
    "not-found": "Run it again with another seed, and with another backend (`trainmark parity`).",
}


def diagnose(replay: Replay) -> Diagnosis:
    """Return the first cause that the evidence supports; causes that mask others come first."""
    for diagnose in (_labels, _overflow, _data, _underflow, _frozen, _leap, _dead, _rate):
        found = diagnose(replay)
        if found is not None:
            return found
    evidence = "the replay showed nothing unusual"
    if replay.stopped:
        evidence = f"the process ended: {replay.stopped}"
    return _diagnosis("not-found", replay.failed_at, None, evidence)


def _diagnosis(cause: Failure, step: int | None, where: str | None, *evidence: str) -> Diagnosis:
    return Diagnosis(cause, step, where, evidence, DO[cause])


def _labels(replay: Replay) -> Diagnosis | None:
    for each in replay.opened:
        if each.bad_labels:
            evidence = f"invalid labels: {', '.join(map(str, each.bad_labels))}"
            return _diagnosis("labels-out-of-range", each.step, "labels", evidence)
    message = replay.stopped or ""
    index = _INDEX_REFUSED.search(message)
    is_of_label = index is not None and int(index[2]) == replay.classes
    if is_of_label or _LABEL_REFUSED.search(message):
        evidence = f"the framework reported: {replay.stopped}"
        return _diagnosis("labels-out-of-range", None, "labels", evidence)
    return None


def _data(replay: Replay) -> Diagnosis | None:
    for each in replay.opened:
        bad = each.first_bad
        if bad is not None and bad.kind == "input":
            evidence = "the prepared images have values that are not finite"
            return _diagnosis("nan-in-data", each.step, "input", evidence)
        if each.alone and bad is None:
            first = each.alone[0]
            evidence = (
                f"training example {first.example} alone gives a loss of {first.loss}, the "
                f"reference {first.reference:.4g} with the same weights: its prepared image is not "
                "finite"
            )
            return _diagnosis("nan-in-data", each.step, "input", evidence)
    return None


def _overflow(replay: Replay) -> Diagnosis | None:
    largest = PRECISIONS[replay.precision].largest
    if largest is None:
        return None
    for each in replay.opened:
        if math.isfinite(each.loss) and each.finite_after:
            continue
        for tensor in each.tensors:
            if tensor.finite and tensor.largest > largest:
                evidence = (
                    f"its largest value in float32 is {tensor.largest:.4g}; {replay.precision} "
                    f"ends at {largest:,.0f}"
                )
                return _diagnosis("precision-overflow", each.step, tensor.title, evidence)
    return None


def _underflow(replay: Replay) -> Diagnosis | None:
    if replay.loss_kind != _TWO_STAGE or replay.failed_at is None:
        return None
    for each in replay.opened:
        bad = each.first_bad
        starts_at_loss = bad is None or bad.kind in ("loss", "gradient")
        if each.gap is not None and each.gap > UNDERFLOW_GAP and starts_at_loss:
            evidence = (
                f"the true class's logit is {each.gap:.1f} below the largest: its probability is "
                f"e^-{each.gap:.1f}, subnormal or 0 in float32, so its logarithm or the reciprocal "
                "in its gradient is infinite"
            )
            where = "loss" if bad is None else bad.title
            return _diagnosis("softmax-underflow", each.step, where, evidence)
    return None


def _frozen(replay: Replay) -> Diagnosis | None:
    if not replay.opened:
        return None
    first = replay.opened[0]
    last = replay.opened[-1]
    matrices = [name for name in first.unchanged if name in first.moved and name in last.unchanged]
    if not matrices:
        return None
    gradients = {
        tensor.name: tensor.largest for tensor in first.tensors if tensor.kind == "gradient"
    }
    asleep = [name for name in matrices if gradients.get(name, 0.0) > 0]
    if asleep:
        evidence = (
            f"{', '.join(asleep)} did not change at all, although the gradient of {asleep[0]} "
            f"reaches {gradients[asleep[0]]:.3g} in the reference"
        )
        return _diagnosis("nothing-is-training", first.step, f"update {asleep[0]}", evidence)
    evidence = f"the gradient of {', '.join(matrices)} is zero"
    where = f"gradient {matrices[0]}"
    return _dead(replay) or _diagnosis("nothing-is-training", first.step, where, evidence)


def _dead(replay: Replay) -> Diagnosis | None:
    for each in replay.opened:
        for tensor in each.tensors:
            if tensor.dead is not None and tensor.dead >= _MOSTLY:
                evidence = (
                    f"{100 * tensor.dead:.0f} % of its units give 0 for every example of the batch"
                )
                return _diagnosis("dead-relus", each.step, f"activation {tensor.name}", evidence)
    return None


def _leap(replay: Replay) -> Diagnosis | None:
    """Check for a too large learning rate, before dead ReLUs, which it can cause."""
    leaps = [each for each in replay.opened if _largest(each.moved) > _LARGE_MOVE]
    return _rate(dataclasses.replace(replay, opened=tuple(leaps))) if leaps else None


def _rate(replay: Replay) -> Diagnosis | None:
    losses = [loss for loss in replay.losses if math.isfinite(loss)]
    moved = [(each.step, _largest(each.moved)) for each in replay.opened]
    step, move = max(moved, key=itemgetter(1), default=(None, 0.0))
    if losses and (move > _LARGE_MOVE or _rises(losses)):
        rise = f"the loss went from {losses[0]:.4g} to {max(losses):.4g}"
        leap = f"one step changes a weight by up to {move:.3g} times its largest value"
        return _diagnosis("learning-rate", step, None, rise, leap)
    if losses and replay.failed_at is None and 0 < move < _SMALL_MOVE:
        evidence = f"a step changes no weight by more than {move:.1g} of its largest value"
        return Diagnosis("learning-rate", step, None, (evidence,), "Use a larger learning rate.")
    return None


def _largest(moved: Mapping[str, float | None]) -> float:
    """Return the largest finite change; one that is not finite has another cause."""
    return max((value for value in moved.values() if value is not None), default=0.0)


def _rises(losses: Sequence[float]) -> bool:
    """Return whether the loss ends higher than it began."""
    tail = losses[-max(1, len(losses) // 10) :]
    return len(losses) > 1 and sum(tail) / len(tail) > _HIGHER * losses[0]
