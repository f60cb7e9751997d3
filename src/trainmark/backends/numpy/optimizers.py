"""The optimisers as defined, on dictionaries of arrays, in place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.errors import assert_never
from trainmark.workload.optimizers import SGD, Adam, Optimizer, RMSprop, learning_rate_at

Array = NDArray[Any]
Parameters = dict[str, Array]


class Updater:
    """An optimiser with its state: two arrays per weight, which start at zero."""

    def __init__(self, spec: Optimizer, weights: Parameters) -> None:
        self._spec, self._step = spec, 0
        self._state = {name: np.zeros((2, *weight.shape), weight.dtype) for name, weight in weights.items()}

    def update(self, weights: Parameters, gradients: Parameters) -> None:
        """Update ``weights`` by one step."""
        spec, rate = self._spec, learning_rate_at(self._spec, self._step)
        self._step += 1
        for name, weight in weights.items():
            gradient, (mean, square) = gradients[name], self._state[name]
            match spec:
                case SGD():
                    if spec.weight_decay and (spec.decay_biases or not name.endswith(".bias")):
                        gradient = gradient + spec.weight_decay * weight
                    _sgd(spec, rate, weight, gradient, mean)
                case Adam():
                    _adam(spec, rate, self._step, weight, gradient, mean, square)
                case RMSprop():  # the new average is used, and ε is outside the root
                    square *= spec.rho
                    square += (1 - spec.rho) * gradient * gradient
                    weight -= rate * gradient / (np.sqrt(square) + spec.epsilon)
                case _:
                    assert_never(spec)


def _sgd(spec: SGD, rate: float, weight: Array, gradient: Array, momentum: Array) -> None:
    """Gradient descent, with either form of momentum."""
    if not spec.momentum:
        weight -= rate * gradient
    elif spec.momentum_form == "buffer":
        momentum *= spec.momentum
        momentum += gradient
        weight -= rate * momentum
    else:
        momentum *= spec.momentum
        momentum -= rate * gradient
        weight += momentum


def _adam(spec: Adam, rate: float, t: int, weight: Array, gradient: Array, mean: Array, square: Array) -> None:
    """Adam, with ε outside the root of the corrected second moment."""
    mean *= spec.beta1
    mean += (1 - spec.beta1) * gradient
    square *= spec.beta2
    square += (1 - spec.beta2) * gradient * gradient
    unbiased_mean = mean / (1 - spec.beta1**t)
    unbiased_square = square / (1 - spec.beta2**t)
    weight -= rate * unbiased_mean / (np.sqrt(unbiased_square) + spec.epsilon)
