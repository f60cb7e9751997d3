"""Do two trainings compute the same thing? Their losses are held against what rounding alone does to them.

Two frameworks add the same numbers in another order, so their losses can't be equal bit by bit, and training
amplifies the difference: hardly with plain gradient descent, a hundred thousand times within a few steps where an
optimiser divides by the root of a tiny gradient and rounding turns that gradient's sign. So no fixed tolerance is
right. It is measured, on these very sides: each is trained again from initial weights of which every one is moved by
one unit in the last place, up or down, :data:`NUDGES` times. How far that moves its losses is what rounding may do.

At step ``s`` the tolerance is :data:`MULTIPLE` times the largest relative movement up to ``s`` of either side, and
never less than :data:`FLOOR_UNITS` units in the last place of a loss. The two part at the first step whose relative
difference is larger. The tolerance of a step holds nothing of later steps, so a mistake is caught in the first steps,
before rounding has grown; where a chaotic training ends does not excuse how it began.

The constants are measured (real MNIST, 100 steps, float32, four workloads, 30 trainings of each side; the table is in
``docs/parity.md``): two right sides reach 0.44 of their tolerance at most. Of a scale of 256 for 255, a rate 1 % off
and an epsilon inside the root, each on every workload that has it, the least visible reaches 2.3 times its tolerance,
all but one more than 100 times.
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
"""Two right sides were up to 2.0 times as far apart as one nudge moves them; of three the largest moves more: 1.3."""
MULTIPLE = 3.0
"""The middle, as a factor, between that 1.3 and 7.0, where the least visible mistake would be lost."""
FLOOR_UNITS = 8.0
"""Two right sides differ by up to 1.4 units before any training has amplified it."""


@dataclass(frozen=True)
class Curve:
    """What is known of one side.

    Args:
        title: for people.
        losses: of every step, ``[steps]``, as far as it came.
        nudged: the same for each nudge of its initial weights.
        trouble: why it, or a nudged run of it, did not come to its end; None when all did.
        diverged_at: the first step whose loss is not finite, when that is the trouble of the run itself.
    """

    title: str
    losses: Sequence[float]
    nudged: Sequence[Sequence[float]]
    trouble: str | None = None
    diverged_at: int | None = None


def curve_of(title: str, record: Record, *nudged: Record, steps: int | None = None) -> Curve:
    """The curve of one side.

    Args:
        record: of its run with unchanged weights.
        nudged: of its runs with nudged weights. If one failed, so does the curve: it has no tolerance.
        steps: to compare; None is all.
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
        unit: in the last place of a loss near 1.
        share: what one unit in the last place of a weight is of the nudge that was given.
    """

    unit: float
    share: float = 1.0


@dataclass(frozen=True)
class Pair:
    """Two sides held against each other. Steps count from 0; differences are relative to the larger loss.

    Args:
        a, b: the sides.
        steps: how many both made with finite losses.
        tolerance: at the step where they part; where they never do, at the step of the largest difference.
        largest_difference: of all steps.
        parts_at_step: the first step whose difference exceeds its tolerance.
        losses_a, losses_b: as far as each came, ``[steps]``.
        passed: both came to their end and never part.
        reason: why not, for people.
        differences, tolerances: of every step, ``[steps]``.
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
    """All pairs of sides, and under which conditions; its field names are the keys of ``trainmark parity --json``.

    ``left_out`` are sentences: sides that were asked for and could not take part.
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
        """Whether every pair did."""
        return all(pair.passed for pair in self.pairs)


def judge_all(curves: Iterable[Curve], rounding: Rounding) -> tuple[Pair, ...]:
    """Every two of ``curves``, each pair once."""
    return tuple(judge(a, b, rounding) for a, b in itertools.combinations(curves, 2))


def judge(a: Curve, b: Curve, rounding: Rounding) -> Pair:
    """Hold ``a`` and ``b`` against each other for as long as both, and all their nudged runs, have finite losses."""
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
    """What rounding may do to the losses of ``sides`` up to each step, ``[steps]``."""
    movement = np.zeros(steps)
    for side in sides:
        for nudged in side.nudged:
            movement = np.maximum(movement, relative_difference(side.losses[:steps], nudged[:steps]))
    grown = np.maximum.accumulate(movement) * rounding.share
    return np.maximum(MULTIPLE * grown, FLOOR_UNITS * rounding.unit)


def relative_difference(a: Sequence[float], b: Sequence[float]) -> Losses:
    """Distance of two losses as a share of the larger, step by step; 0 where both are 0."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    larger = np.maximum(np.abs(first), np.abs(second))
    return np.divide(np.abs(first - second), larger, out=np.zeros(len(first)), where=larger > 0)


def _finite(losses: Sequence[float]) -> int:
    """How many losses come before the first that is not finite."""
    return next((step for step, loss in enumerate(losses) if not math.isfinite(loss)), len(losses))


def _reason(a: Curve, b: Curve, parts_at: int | None) -> str | None:
    reasons = [] if parts_at is None else [f"they part at step {parts_at}"]
    if a.diverged_at is not None and a.diverged_at == b.diverged_at:
        so_far = "and agree up to there" if parts_at is None else ""
        reasons.append(f"both reach a loss that is not finite at step {a.diverged_at} {so_far}".rstrip())
    else:
        reasons += [f"{side.title}: {side.trouble}" for side in (a, b) if side.trouble]
    return "; ".join(reasons) or None
