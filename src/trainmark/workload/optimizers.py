"""Optimisers, defined by their updates. ``g`` is the gradient of the batch mean, ``t`` counts updates from 1.

Per-layer L2 is part of the loss (see the layers), weight decay is part of the update: ``g + weight_decay · w``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trainmark.errors import assert_never
from trainmark.workload.decode import Bounded, Count, NotNegative, Positive, Share, require


@dataclass(frozen=True)
class Staircase(Bounded):
    """Multiplies the learning rate by ``factor`` every ``steps`` updates."""

    factor: Positive
    steps: Count


@dataclass(frozen=True)
class SGD(Bounded):
    """Gradient descent with momentum ``μ`` in one of the two published forms.

    ``buffer`` (PyTorch): ``b ← μ·b + g; w ← w - lr·b``.
    ``velocity`` (MXNet):  ``v ← μ·v - lr·g; w ← w + v``.
    They differ only when the learning rate changes.
    """

    learning_rate: Positive
    momentum: Share = 0.0
    momentum_form: Literal["buffer", "velocity"] = "buffer"
    weight_decay: NotNegative = 0.0
    decay_biases: bool = True
    staircase: Staircase | None = None
    kind: Literal["sgd"] = "sgd"


@dataclass(frozen=True)
class Adam(Bounded):
    """``m ← β1·m + (1-β1)·g; v ← β2·v + (1-β2)·g²; w ← w - lr·m̂/(√v̂ + ε)`` with ``m̂ = m/(1-β1ᵗ)``, ``v̂ = v/(1-β2ᵗ)``.

    Kingma and Ba 2015, algorithm 1: ε is outside the root of the corrected moment.
    """

    learning_rate: Positive
    beta1: Share = 0.9
    beta2: Share = 0.999
    epsilon: Positive = 1e-8
    staircase: Staircase | None = None
    kind: Literal["adam"] = "adam"


@dataclass(frozen=True)
class RMSprop(Bounded):
    """``a ← ρ·a + (1-ρ)·g²; w ← w - lr·g/(√a + ε)`` with the new ``a``, which starts at 0."""

    learning_rate: Positive
    rho: Share = 0.9
    epsilon: Positive = 1e-8
    staircase: Staircase | None = None
    kind: Literal["rmsprop"] = "rmsprop"


Optimizer = SGD | Adam | RMSprop


def slots_of(optimizer: Optimizer) -> tuple[str, ...]:
    """Return the names of the arrays that the optimiser keeps for each weight."""
    match optimizer:
        case SGD():
            return ("momentum",) if optimizer.momentum else ()
        case Adam():
            return "mean", "square"
        case RMSprop():
            return ("square",)
        case _:
            assert_never(optimizer)


def learning_rate_at(optimizer: Optimizer, step: int) -> float:
    """Return the learning rate of update ``step``, counted from 0."""
    if optimizer.staircase is None:
        return optimizer.learning_rate
    return optimizer.learning_rate * optimizer.staircase.factor ** (step // optimizer.staircase.steps)


@dataclass(frozen=True)
class WeightAverage:
    """Exponential moving average of all parameters, used for evaluation only.

    After update ``t`` (from 0): ``average ← d·average + (1-d)·w`` with ``d = min(decay, (1+t)/(10+t))``.
    """

    decay: float

    def __post_init__(self) -> None:
        require(0 < self.decay < 1, "decay", "a number between 0 and 1", self.decay)

    def decay_at(self, step: int) -> float:
        """Return the decay after update ``step``, counted from 0."""
        return min(self.decay, (1 + step) / (10 + step))
