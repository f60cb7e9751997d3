"""Optimisers, defined by their update. ``g`` is the gradient of the batch mean, ``t`` counts updates from 1.

Per-layer L2 is part of the loss (see the layers), weight decay part of the update: ``g + weight_decay · w``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trainmark.workload.decode import require


@dataclass(frozen=True)
class Staircase:
    """Multiplies the learning rate by ``factor`` every ``steps`` updates."""

    factor: float
    steps: int

    def __post_init__(self) -> None:
        require(self.factor > 0, "factor", "a number above 0", self.factor)
        require(self.steps > 0, "steps", "a whole number above 0", self.steps)


@dataclass(frozen=True)
class SGD:
    """Gradient descent with momentum ``μ`` in one of the two published forms.

    ``buffer`` (PyTorch): ``b ← μ·b + g; w ← w - lr·b``.
    ``velocity`` (MXNet):  ``v ← μ·v - lr·g; w ← w + v``.
    They differ only when the learning rate changes.
    """

    learning_rate: float
    momentum: float = 0.0
    momentum_form: Literal["buffer", "velocity"] = "buffer"
    weight_decay: float = 0.0
    decay_biases: bool = True
    staircase: Staircase | None = None
    kind: Literal["sgd"] = "sgd"

    def __post_init__(self) -> None:
        _require_rate(self.learning_rate)
        require(0 <= self.momentum < 1, "momentum", "a number from 0 to below 1", self.momentum)
        require(self.weight_decay >= 0, "weight_decay", "a number from 0", self.weight_decay)


@dataclass(frozen=True)
class Adam:
    """``m ← β1·m + (1-β1)·g; v ← β2·v + (1-β2)·g²; w ← w - lr·m̂/(√v̂ + ε)`` with ``m̂ = m/(1-β1ᵗ)``, ``v̂ = v/(1-β2ᵗ)``.

    Kingma and Ba 2015, algorithm 1: ε stands outside the root of the corrected moment.
    """

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    staircase: Staircase | None = None
    kind: Literal["adam"] = "adam"

    def __post_init__(self) -> None:
        _require_rate(self.learning_rate)
        require(0 <= self.beta1 < 1, "beta1", "a number from 0 to below 1", self.beta1)
        require(0 <= self.beta2 < 1, "beta2", "a number from 0 to below 1", self.beta2)
        require(self.epsilon > 0, "epsilon", "a number above 0", self.epsilon)


@dataclass(frozen=True)
class RMSprop:
    """``a ← ρ·a + (1-ρ)·g²; w ← w - lr·g/(√a + ε)`` with the new ``a``, which starts at 0."""

    learning_rate: float
    rho: float = 0.9
    epsilon: float = 1e-8
    staircase: Staircase | None = None
    kind: Literal["rmsprop"] = "rmsprop"

    def __post_init__(self) -> None:
        _require_rate(self.learning_rate)
        require(0 <= self.rho < 1, "rho", "a number from 0 to below 1", self.rho)
        require(self.epsilon > 0, "epsilon", "a number above 0", self.epsilon)


Optimizer = SGD | Adam | RMSprop


def learning_rate_at(optimizer: Optimizer, step: int) -> float:
    """The learning rate of update ``step``, counted from 0."""
    if optimizer.staircase is None:
        return optimizer.learning_rate
    return optimizer.learning_rate * optimizer.staircase.factor ** (step // optimizer.staircase.steps)


def _require_rate(rate: float) -> None:
    require(rate > 0, "learning_rate", "a number above 0", rate)


@dataclass(frozen=True)
class WeightAverage:
    """Exponential moving average of all parameters, used for evaluation only.

    After update ``t`` (from 0): ``average ← d·average + (1-d)·w`` with ``d = min(decay, (1+t)/(10+t))``.
    """

    decay: float

    def __post_init__(self) -> None:
        require(0 < self.decay < 1, "decay", "a number between 0 and 1", self.decay)

    def decay_at(self, step: int) -> float:
        """The decay after update ``step``, counted from 0."""
        return min(self.decay, (1 + step) / (10 + step))
