"""The optimisers as their definitions say, on dictionaries of arrays, in place."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trainmark.errors import assert_never
from trainmark.workload.optimizers import SGD, Adam, Optimizer, RMSprop, learning_rate_at

Parameters = dict[str, NDArray[Any]]


class Updater(Protocol):
    """One optimiser with its state, which starts at zero."""

    def update(self, weights: Parameters, gradients: Parameters) -> None:
        """Change ``weights`` by one step."""


def build(spec: Optimizer) -> Updater:
    """The updater of an optimiser's specification."""
    match spec:
        case SGD():
            return SGDUpdater(spec)
        case Adam():
            return AdamUpdater(spec)
        case RMSprop():
            return RMSpropUpdater(spec)
        case _:
            assert_never(spec)


class SGDUpdater:
    """Gradient descent, with either form of momentum."""

    def __init__(self, spec: SGD) -> None:
        self._spec, self._step = spec, 0
        self._momentum: Parameters = {}

    def update(self, weights: Parameters, gradients: Parameters) -> None:
        spec, rate = self._spec, learning_rate_at(self._spec, self._step)
        for name, weight in weights.items():
            gradient = gradients[name]
            if spec.weight_decay and (spec.decay_biases or not name.endswith(".bias")):
                gradient = gradient + spec.weight_decay * weight
            if not spec.momentum:
                weight -= rate * gradient
            elif spec.momentum_form == "buffer":
                buffer = self._momentum.setdefault(name, np.zeros_like(weight))
                buffer *= spec.momentum
                buffer += gradient
                weight -= rate * buffer
            else:
                velocity = self._momentum.setdefault(name, np.zeros_like(weight))
                velocity *= spec.momentum
                velocity -= rate * gradient
                weight += velocity
        self._step += 1


class AdamUpdater:
    """Adam; ε outside the root of the corrected second moment."""

    def __init__(self, spec: Adam) -> None:
        self._spec, self._step = spec, 0
        self._mean: Parameters = {}
        self._square: Parameters = {}

    def update(self, weights: Parameters, gradients: Parameters) -> None:
        spec, rate, t = self._spec, learning_rate_at(self._spec, self._step), self._step + 1
        for name, weight in weights.items():
            gradient = gradients[name]
            mean = self._mean.setdefault(name, np.zeros_like(weight))
            square = self._square.setdefault(name, np.zeros_like(weight))
            mean *= spec.beta1
            mean += (1 - spec.beta1) * gradient
            square *= spec.beta2
            square += (1 - spec.beta2) * gradient * gradient
            unbiased_mean = mean / (1 - spec.beta1**t)
            unbiased_square = square / (1 - spec.beta2**t)
            weight -= rate * unbiased_mean / (np.sqrt(unbiased_square) + spec.epsilon)
        self._step += 1


class RMSpropUpdater:
    """RMSprop; ε outside the root, the new average used."""

    def __init__(self, spec: RMSprop) -> None:
        self._spec, self._step = spec, 0
        self._square: Parameters = {}

    def update(self, weights: Parameters, gradients: Parameters) -> None:
        spec, rate = self._spec, learning_rate_at(self._spec, self._step)
        for name, weight in weights.items():
            gradient = gradients[name]
            square = self._square.setdefault(name, np.zeros_like(weight))
            square *= spec.rho
            square += (1 - spec.rho) * gradient * gradient
            weight -= rate * gradient / (np.sqrt(square) + spec.epsilon)
        self._step += 1
