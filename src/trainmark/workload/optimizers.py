"""Optimisers, defined by their updates.

``g`` is the gradient of the loss, ``t`` counts updates from 1.

Per-layer L2 is part of the loss (see the layers), weight decay is part of the update.
"""

from __future__ import annotations

import fnmatch
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from trainmark.errors import assert_never
from trainmark.workload.decode import (
    Bound,
    Bounded,
    Count,
    Misfit,
    NotNegative,
    Positive,
    Share,
    did_you_mean,
    require,
    short,
)
from trainmark.workload.schedule import MOST_STEPS


def _is_step(value: int) -> bool:
    return 0 < value <= MOST_STEPS


_Steps = Annotated[int, Bound(_is_step, f"a whole number from 1 to {MOST_STEPS:,}")]


@dataclass(frozen=True)
class Staircase(Bounded):
    """Multiplies the learning rate by ``factor`` every ``steps`` updates."""

    factor: Positive
    steps: Count


@dataclass(frozen=True)
class WarmupCosine(Bounded):
    """Linear warm-up, then cosine decay to ``lowest``, which it reaches after ``steps`` updates.

    Update ``i`` (from 0) has ``rate · (i + 1)/(warmup + 1)`` while ``i < warmup``, then
    ``lowest + (rate - lowest)/2 · (1 + cos(π · (i - warmup)/(steps - warmup)))``.
    """

    warmup: int
    steps: _Steps
    lowest: NotNegative = 0.0
    kind: Literal["warmup-cosine"] = "warmup-cosine"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            0 <= self.warmup < self.steps,
            "warmup",
            "a whole number of at least 0 and below 'steps'",
            self.warmup,
        )

    @property
    def length(self) -> int:
        """Number of updates after which the rate stays the same."""
        return self.steps

    def at(self, rate: float, step: int) -> float:
        """Return the learning rate of update ``step``, counted from 0."""
        if step < self.warmup:
            return rate * (step + 1) / (self.warmup + 1)
        share = min((step - self.warmup) / (self.steps - self.warmup), 1.0)
        return self.lowest + (rate - self.lowest) / 2 * (1 + math.cos(math.pi * share))


@dataclass(frozen=True)
class PiecewiseLinear:
    """Multiplies the learning rate by a factor interpolated between ``points``.

    These are ``[t, factor]`` in order of ``t``.
    """

    points: tuple[tuple[float, float], ...]
    kind: Literal["piecewise-linear"] = "piecewise-linear"

    def __post_init__(self) -> None:
        rises = all(before[0] < after[0] for before, after in itertools.pairwise(self.points))
        require(
            len(self.points) > 1 and rises,
            "points",
            "two or more points [t, factor] in order of t",
            self.points,
        )
        fits = (
            self.points[0][0] >= 0
            and self.points[-1][0] <= MOST_STEPS
            and all(low >= 0 for _, low in self.points)
        )
        require(fits, "points", f"t from 0 to {MOST_STEPS:,} and factors from 0", self.points)

    @property
    def length(self) -> int:
        """Number of updates after which the rate stays the same."""
        return math.ceil(self.points[-1][0])

    def at(self, rate: float, step: int) -> float:
        """Return the learning rate of update ``step``, counted from 0."""
        t = float(step + 1)
        for (start, low), (end, high) in itertools.pairwise(self.points):
            if t <= end:
                return rate * (low + (high - low) * max(t - start, 0.0) / (end - start))
        return rate * self.points[-1][1]


LearningRateSchedule = WarmupCosine | PiecewiseLinear


@dataclass(frozen=True)
class Group:
    """A parameter group: weights with a different weight decay.

    Args:
        of: ``vectors`` (one axis), ``matrices`` (more axes), or a pattern of keys such as
            ``*.bias``.
        weight_decay: instead of the optimiser's.
    """

    of: str
    weight_decay: float

    def __post_init__(self) -> None:
        require(self.weight_decay >= 0, "weight_decay", "a number from 0", self.weight_decay)

    def has(self, key: str, axes: int) -> bool:
        """Whether the weight ``key`` belongs to it."""
        if self.of in ("vectors", "matrices"):
            return (axes > 1) == (self.of == "matrices")
        return fnmatch.fnmatchcase(key, self.of)


@dataclass(frozen=True, kw_only=True)
class Common(Bounded):
    """Options of every optimiser.

    Args:
        staircase: step decay of the learning rate.
        lr_schedule: another learning-rate schedule.
        clip_norm: gradient clipping by global norm: all gradients are multiplied by
            ``clip_norm/(‖g‖ + 1e-6)`` if that is below 1, where ``‖g‖`` is the norm of all
            gradients together.
    """

    staircase: Staircase | None = None
    lr_schedule: LearningRateSchedule | None = None
    clip_norm: Positive | None = None

    def __post_init__(self) -> None:
        both = self.staircase is not None and self.lr_schedule is not None
        require(not both, "lr_schedule", "'staircase' or 'lr_schedule', not both", "both")
        super().__post_init__()


CLIP_EPSILON = 1e-6
"""Added to the norm of the gradients, as PyTorch does."""


@dataclass(frozen=True)
class SGD(Common):
    """Gradient descent with momentum ``μ`` in one of the two published forms.

    ``g`` includes ``weight_decay · w``.

    ``buffer`` (PyTorch): ``b ← μ·b + g; w ← w - lr·b``; with Nesterov momentum ``w ← w - lr·(g +
    μ·b)``. ``velocity`` (MXNet):  ``v ← μ·v - lr·g; w ← w + v``; with Nesterov momentum ``w ← w -
    lr·g + μ·v``. They differ only when the learning rate changes.
    """

    learning_rate: Positive
    momentum: Share = 0.0
    momentum_form: Literal["buffer", "velocity"] = "buffer"
    weight_decay: NotNegative = 0.0
    decay_biases: bool = True
    nesterov: bool = False
    groups: tuple[Group, ...] = ()
    kind: Literal["sgd"] = "sgd"

    def __post_init__(self) -> None:
        require(
            self.momentum > 0 or not self.nesterov, "nesterov", "a momentum above 0", self.momentum
        )
        super().__post_init__()


@dataclass(frozen=True)
class Adam(Common):
    """``m ← β1·m + (1-β1)·g; v ← β2·v + (1-β2)·g²; w ← w - lr·m̂/(√v̂ + ε)``.

    Here ``m̂ = m/(1-β1ᵗ)`` and ``v̂ = v/(1-β2ᵗ)``.

    Kingma and Ba 2015, algorithm 1: ε is outside the root of the corrected moment.
    """

    learning_rate: Positive
    beta1: Share = 0.9
    beta2: Share = 0.999
    epsilon: Positive = 1e-8
    kind: Literal["adam"] = "adam"


@dataclass(frozen=True)
class AdamW(Common):
    """:class:`Adam` after ``w ← w - lr·weight_decay·w``.

    See Loshchilov and Hutter 2019, with the rate in both terms.
    """

    learning_rate: Positive
    beta1: Share = 0.9
    beta2: Share = 0.999
    epsilon: Positive = 1e-8
    weight_decay: NotNegative = 0.01
    groups: tuple[Group, ...] = ()
    kind: Literal["adamw"] = "adamw"


@dataclass(frozen=True)
class RMSprop(Common):
    """``a ← ρ·a + (1-ρ)·g²; w ← w - lr·g/(√a + ε)`` with the new ``a``, which starts at 0."""

    learning_rate: Positive
    rho: Share = 0.9
    epsilon: Positive = 1e-8
    kind: Literal["rmsprop"] = "rmsprop"


Optimizer = SGD | Adam | AdamW | RMSprop


def slots_of(optimizer: Optimizer) -> tuple[str, ...]:
    """Return the names of the arrays that the optimiser keeps for each weight."""
    match optimizer:
        case SGD():
            return ("momentum",) if optimizer.momentum else ()
        case Adam() | AdamW():
            return "mean", "square"
        case RMSprop():
            return ("square",)
        case _:
            assert_never(optimizer)


def weight_decay_of(optimizer: Optimizer, key: str, axes: int) -> float:
    """Return the weight decay of the weight ``key``, which has that many axes."""
    if not isinstance(optimizer, (SGD, AdamW)):
        return 0.0
    if isinstance(optimizer, SGD) and not optimizer.decay_biases and key.endswith(".bias"):
        return 0.0
    found = (group.weight_decay for group in optimizer.groups if group.has(key, axes))
    return next(found, optimizer.weight_decay)


def require_groups(optimizer: Optimizer, axes: Mapping[str, int]) -> None:
    """Raise Misfit for a parameter group that has none of the trained weights.

    These are given with their number of axes.
    """
    for index, group in enumerate(optimizer.groups if isinstance(optimizer, (SGD, AdamW)) else ()):
        if not any(group.has(key, count) for key, count in axes.items()):
            known = dict.fromkeys(
                ["vectors", "matrices", *(f"*.{key.rpartition('.')[2]}" for key in axes), *axes]
            )
            expected = (
                "'vectors', 'matrices' or a pattern, that fits a trained "
                f"weight{did_you_mean(group.of, known)}"
            )
            raise Misfit(("optimizer", "groups", index, "of"), expected, short(repr(group.of)))


def learning_rate_at(optimizer: Optimizer, step: int) -> float:
    """Return the learning rate of update ``step``, counted from 0."""
    rate = optimizer.learning_rate
    if optimizer.lr_schedule is not None:
        return optimizer.lr_schedule.at(rate, step)
    if optimizer.staircase is None:
        return rate
    return rate * optimizer.staircase.factor ** (step // optimizer.staircase.steps)


def corners(optimizer: Optimizer) -> list[int]:
    """Return the updates around which the learning-rate schedule changes."""
    if optimizer.staircase is not None:
        return [optimizer.staircase.steps - 1, optimizer.staircase.steps]
    match optimizer.lr_schedule:
        case None:
            return []
        case WarmupCosine(warmup=warmup, steps=steps):
            return [warmup - 1, warmup, (warmup + steps) // 2, steps]
        case PiecewiseLinear(points=points):
            return [math.ceil(t) for t, _ in points if t >= 1]
        case _:
            assert_never(optimizer.lr_schedule)


def learning_rates(lr_schedule: LearningRateSchedule, rate: float) -> list[float]:
    """Return the learning rate of each update; the last one holds for all later ones."""
    return [lr_schedule.at(rate, step) for step in range(lr_schedule.length + 1)]


@dataclass(frozen=True)
class WeightAverage:
    """Exponential moving average of all parameters, used for evaluation only.

    After update ``t`` (from 0): ``average ← d·average + (1-d)·w`` with ``d = min(decay,
    (1+t)/(10+t))``.
    """

    decay: float

    def __post_init__(self) -> None:
        require(0 < self.decay < 1, "decay", "a number between 0 and 1", self.decay)

    def decay_at(self, step: int) -> float:
        """Return the decay after update ``step``, counted from 0."""
        return min(self.decay, (1 + step) / (10 + step))
