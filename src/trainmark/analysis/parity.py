"""Decide whether two trainings compute the same thing: compare their losses with the effect of rounding alone.

Two frameworks add the same numbers in different orders, so their losses can't be bitwise equal, and training
amplifies the difference: hardly with plain gradient descent, but 100,000 times within a few steps if an optimiser
divides by the root of a tiny gradient whose sign depends on rounding. So no fixed tolerance is right. It is measured
on the same sides: each is trained again :data:`NUDGES` times from initial weights that are each moved by one unit in
the last place, up or down. The resulting change of its losses is what rounding may cause.

At step ``s`` the tolerance is :data:`MULTIPLE` times the largest relative change up to ``s`` on either side, and
at least :data:`FLOOR_UNITS` units in the last place of a loss. Two sides differ from the first step on whose relative
difference is larger. The tolerance of a step doesn't depend on later steps, so a mistake is detected in the first
steps, before rounding has grown, even if the training is chaotic later.

The constants are measured (real MNIST, 100 steps, float32, four workloads, 30 trainings of each side; the table is in
``docs/parity.md``): two correct sides reach at most 0.44 of their tolerance. Three mistakes were tried on
every workload they apply to: scaling by 256 instead of 255, a learning rate 1 % off, and an epsilon inside the root.
The least visible reaches 2.3 times its tolerance, all but one more than 100 times.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainmark.record.record import Record

Losses = NDArray[np.float64]

NUDGES = 3
"""Two correct sides were up to 2.0 times as far apart as one nudge moves them, or 1.3 times the largest of three."""
MULTIPLE = 3.0
"""The geometric mean of that 1.3 and of 7.0, from which on the least visible mistake would be missed."""
FLOOR_UNITS = 8.0
"""Two correct sides differ by up to 1.4 units before training amplifies it."""


@dataclass(frozen=True)
class Curve:
    """The losses of one side.

    Args:
        title: title for the user.
        losses: losses of every completed step, ``[steps]``.
        nudged: likewise, for each nudge of its initial weights.
        trouble: why it, or a nudged run of it, did not finish; None if all did.
        diverged_at: the first step whose loss is not finite, if the run itself failed for that reason.
    """

    title: str
    losses: Sequence[float]
    nudged: Sequence[Sequence[float]]
    trouble: str | None = None
    diverged_at: int | None = None


def curve_of(title: str, record: Record, *nudged: Record, steps: int | None = None) -> Curve:
    """Return the curve of one side.

    Args:
        record: record of its run with unchanged weights.
        nudged: records of its runs with nudged weights. If one failed, there is no tolerance, so the curve failed too.
        steps: number of steps to compare; None is all.
    """
    broken = next((each for each in (record, *nudged) if each.outcome.status != "ok"), None)
    trouble = None
    if broken is not None:
        which = "" if broken is record else ", with nudged weights"
        trouble = f"{broken.outcome.status}{which}, {broken.outcome.reason}"
    return Curve(
        title,
        record.step_losses[:steps],
        [each.step_losses[:steps] for each in nudged if each.step_losses],
        trouble,
        record.outcome.step if record.outcome.status == "diverged" else None,
    )


@dataclass(frozen=True)
class Rounding:
    """The arithmetic of a precision.

    Args:
        unit: unit in the last place of a loss near 1.
        share: one unit in the last place of a weight, as a share of the applied nudge.
    """

    unit: float
    share: float = 1.0


@dataclass(frozen=True)
class Pair:
    """The comparison of two sides. Steps count from 0; differences are relative to the larger loss.

    Args:
        a, b: the sides.
        steps: number of steps for which both have finite losses.
        tolerance: tolerance at ``parts_at_step``, or else at the step of the largest difference.
        largest_difference: largest difference of all steps.
        parts_at_step: the first step whose difference exceeds its tolerance.
        losses_a, losses_b: losses of each completed step, ``[steps]``.
        passed: whether both finished and agree at every step.
        reason: why not, for the user.
        differences, tolerances: values of every step, ``[steps]``.
    """

    a: str
    b: str
    steps: int
    tolerance: float | None
    largest_difference: float | None
    parts_at_step: int | None
    losses_a: tuple[float, ...]
    losses_b: tuple[float, ...]
    passed: bool
    reason: str | None
    differences: tuple[float, ...]
    tolerances: tuple[float, ...]


@dataclass(frozen=True)
class Parity:
    """All pairs of sides, and their conditions; its field names are the keys of ``trainmark parity --json``.

    ``left_out`` has a sentence for each requested side that could not take part.
    """

    workload: str
    dataset: str
    precision: str
    seed: int
    steps: int
    nudges: int
    multiple: float
    pairs: tuple[Pair, ...]
    left_out: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every pair passed."""
        return all(pair.passed for pair in self.pairs)


def judge_all(curves: Iterable[Curve], rounding: Rounding) -> tuple[Pair, ...]:
    """Compare all pairs of ``curves``."""
    return tuple(judge(a, b, rounding) for a, b in itertools.combinations(curves, 2))


def judge(a: Curve, b: Curve, rounding: Rounding) -> Pair:
    """Compare ``a`` and ``b`` for as long as both, and all their nudged runs, have finite losses."""
    steps = min(_finite(losses) for side in (a, b) for losses in (side.losses, *side.nudged))
    differences = relative_difference(a.losses[:steps], b.losses[:steps])
    tolerances = tolerance((a, b), steps, rounding)
    apart = np.flatnonzero(differences > tolerances)
    parts_at = int(apart[0]) if apart.size else None
    decisive = None if not steps else int(differences.argmax()) if parts_at is None else parts_at
    reason = _reason(a, b, parts_at)
    return Pair(
        a=a.title,
        b=b.title,
        steps=steps,
        tolerance=None if decisive is None else float(tolerances[decisive]),
        largest_difference=float(differences.max()) if steps else None,
        parts_at_step=parts_at,
        losses_a=tuple(a.losses),
        losses_b=tuple(b.losses),
        passed=reason is None,
        reason=reason,
        differences=tuple(differences.tolist()),
        tolerances=tuple(tolerances.tolist()),
    )


def tolerance(sides: Iterable[Curve], steps: int, rounding: Rounding) -> Losses:
    """Return how much rounding may change the losses of ``sides`` up to each step, ``[steps]``."""
    movement = np.zeros(steps)
    for side in sides:
        for nudged in side.nudged:
            movement = np.maximum(movement, relative_difference(side.losses[:steps], nudged[:steps]))
    grown = np.maximum.accumulate(movement) * rounding.share
    return np.maximum(MULTIPLE * grown, FLOOR_UNITS * rounding.unit)


def relative_difference(a: Sequence[float], b: Sequence[float]) -> Losses:
    """Return the difference of two losses as a share of the larger, per step; 0 if both are 0."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    larger = np.maximum(np.abs(first), np.abs(second))
    return np.divide(np.abs(first - second), larger, out=np.zeros(len(first)), where=larger > 0)


def _finite(losses: Sequence[float]) -> int:
    """Return the number of losses before the first that is not finite."""
    return next((step for step, loss in enumerate(losses) if not math.isfinite(loss)), len(losses))


def _reason(a: Curve, b: Curve, parts_at: int | None) -> str | None:
    reasons = [] if parts_at is None else [f"they differ from step {parts_at} on"]
    if a.diverged_at is not None and a.diverged_at == b.diverged_at:
        so_far = "and agree until then" if parts_at is None else ""
        reasons.append(f"both reach a loss that is not finite at step {a.diverged_at} {so_far}".rstrip())
    else:
        reasons += [f"{side.title}: {side.trouble}" for side in (a, b) if side.trouble]
    return "; ".join(reasons) or None
