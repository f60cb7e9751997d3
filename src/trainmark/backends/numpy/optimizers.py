"""The optimisers as defined, on dictionaries of arrays, in place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.stepwise import Arrays, State
from trainmark.errors import assert_never
from trainmark.workload import optimizers as definitions

Array = NDArray[Any]
Parameters = dict[str, Array]


class Updater:
    """An optimiser with its state, which starts at zero.

    Attributes:
        slots: its arrays, by name of the slot and then of the weight.
        step: number of updates so far.
    """

    def __init__(
        self, spec: definitions.Optimizer, weights: Parameters, trained: Iterable[str]
    ) -> None:
        trained = tuple(trained)
        self._spec = spec
        self._trained = trained
        self.step = 0
        self.slots: dict[str, Parameters] = {
            slot: {name: np.zeros_like(weights[name]) for name in trained}
            for slot in definitions.slots_of(spec)
        }

    def update(self, weights: Parameters, gradients: Parameters) -> None:
        """Update ``weights`` by one step."""
        spec = self._spec
        rate = definitions.learning_rate_at(self._spec, self.step)
        self.step += 1
        share = clipped_share(spec, [gradients[name] for name in self._trained])
        for name in self._trained:
            weight = weights[name]
            gradient = gradients[name]
            if share < 1:
                gradient = gradient * weight.dtype.type(share)
            state = {slot: arrays[name] for slot, arrays in self.slots.items()}
            decay = definitions.weight_decay_of(spec, name, weight.ndim)
            match spec:
                case definitions.SGD():
                    if decay:
                        gradient = gradient + decay * weight
                    _sgd(spec, rate, weight, gradient, state.get("momentum"))
                case definitions.Adam() | definitions.AdamW():
                    weight *= 1 - rate * decay
                    _adam(spec, rate, self.step, weight, gradient, state["mean"], state["square"])
                case definitions.RMSprop():  # the new average is used, and ε is outside the root
                    square = state["square"]
                    square *= spec.rho
                    square += (1 - spec.rho) * gradient * gradient
                    weight -= rate * gradient / (np.sqrt(square) + spec.epsilon)
                case _:
                    assert_never(spec)


def updated(spec: definitions.Optimizer, state: State, gradients: Arrays) -> State:
    """Return weights and slots of ``state`` after one update, which leaves ``state`` as it is."""
    weights = {name: np.array(value) for name, value in state.weights.items()}
    updater = Updater(spec, weights, gradients)
    updater.step = state.step
    for slot, arrays in state.slots.items():
        updater.slots[slot] = {name: np.array(value) for name, value in arrays.items()}
    updater.update(
        weights, {name: value.astype(weights[name].dtype) for name, value in gradients.items()}
    )
    return State(weights, updater.slots, state.average, updater.step)


def clipped_share(spec: definitions.Optimizer, gradients: Sequence[Array]) -> float:
    """Return the factor that clips all gradients, at most 1."""
    if spec.clip_norm is None:
        return 1.0
    norm = math.sqrt(sum(float(np.vdot(each, each)) for each in gradients))
    return min(1.0, spec.clip_norm / (norm + definitions.CLIP_EPSILON))


def _sgd(
    spec: definitions.SGD, rate: float, weight: Array, gradient: Array, momentum: Array | None
) -> None:
    """Gradient descent, with either form of momentum."""
    if momentum is None:
        weight -= rate * gradient
    elif spec.momentum_form == "buffer":
        momentum *= spec.momentum
        momentum += gradient
        weight -= rate * (gradient + spec.momentum * momentum if spec.nesterov else momentum)
    else:
        momentum *= spec.momentum
        momentum -= rate * gradient
        weight += spec.momentum * momentum - rate * gradient if spec.nesterov else momentum


def _adam(
    spec: definitions.Adam | definitions.AdamW,
    rate: float,
    t: int,
    weight: Array,
    gradient: Array,
    mean: Array,
    square: Array,
) -> None:
    """Adam, with ε outside the root of the corrected second moment."""
    mean *= spec.beta1
    mean += (1 - spec.beta1) * gradient
    square *= spec.beta2
    square += (1 - spec.beta2) * gradient * gradient
    unbiased_mean = mean / (1 - spec.beta1**t)
    unbiased_square = square / (1 - spec.beta2**t)
    weight -= rate * unbiased_mean / (np.sqrt(unbiased_square) + spec.epsilon)
