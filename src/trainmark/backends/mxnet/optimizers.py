"""The specified optimisers as MXNet has them, and what it lacks.

MXNet's update operators hold their numbers (rate, decay, momentum) in float32, whatever the type of the weights. So
float64 is computed from the definition, with whole-array operators, which do take float64 numbers.
"""

from __future__ import annotations

import math
from typing import Any

import mxnet as mx
import numpy as np

from trainmark.backends.mxnet.network import bias, kernel
from trainmark.workload.model import Model
from trainmark.workload.optimizers import SGD, Adam, Optimizer, learning_rate_at


def build(spec: Optimizer, model: Model, names: list[str], *, batch: int, float64: bool) -> mx.optimizer.Optimizer:
    """The optimiser of ``spec``.

    Args:
        names: of the parameters, in the order in which they are updated.
        batch: examples whose gradients are summed.
    """
    settings = {
        "learning_rate": spec.learning_rate,
        "lr_scheduler": Rate(spec) if spec.staircase else None,
        "rescale_grad": 1 / batch,
        "wd": 1.0,
        "param_idx2name": dict(enumerate(names)),
    }
    remembers_rates = isinstance(spec, SGD) and (spec.momentum_form == "velocity" or not spec.staircase)
    if float64 or (isinstance(spec, SGD) and not remembers_rates):
        optimizer = Defined(spec, **settings)
    elif isinstance(spec, SGD):
        optimizer = mx.optimizer.SGD(momentum=spec.momentum, **settings)
        optimizer.aggregate_num = len(names)  # one operator for all
    else:
        optimizer = Moments(spec, **settings)
    optimizer.set_wd_mult(_decays(spec, model))
    return optimizer


def _decays(spec: Optimizer, model: Model) -> dict[str, float]:
    """What is added to each gradient, as a share of the weight: weight decay, and the gradient of L2 terms."""
    everywhere, biases = 0.0, 0.0
    if isinstance(spec, SGD):
        everywhere = spec.weight_decay
        biases = everywhere if spec.decay_biases else 0.0
    decays = {kernel(plan): everywhere + plan.l2 for plan in model.weighted_layers}
    return decays | {bias(plan): biases for plan in model.weighted_layers}


class Rate(mx.lr_scheduler.LRScheduler):
    """The staircase; MXNet's own stops at 1e-8."""

    def __init__(self, spec: Optimizer) -> None:
        super().__init__(spec.learning_rate)
        self._spec = spec

    def __call__(self, num_update: int) -> float:
        """The rate of an update, counted from 1."""
        return learning_rate_at(self._spec, num_update - 1)


class Moments(mx.optimizer.Adam):
    """Adam and RMSprop by MXNet's fused Adam, with ε where the definitions have it.

    MXNet's Adam adds ε to the root of the uncorrected moment, its RMSProp puts it under the root. RMSprop by its
    definition is Adam without a first moment and without corrections.
    """

    def __init__(self, spec: Optimizer, **settings: Any) -> None:
        adam = isinstance(spec, Adam)
        beta1, beta2 = (spec.beta1, spec.beta2) if isinstance(spec, Adam) else (0.0, spec.rho)  # type: ignore[union-attr]
        super().__init__(beta1=beta1, beta2=beta2, epsilon=spec.epsilon, **settings)  # type: ignore[union-attr]
        self._corrected = adam

    def update(self, index: int, weight: mx.nd.NDArray, grad: mx.nd.NDArray, state: Any) -> None:
        """One update of one array."""
        self._update_count(index)
        rate, epsilon = self._get_lr(index), self.epsilon
        if self._corrected:
            # With the float32 betas that the operator has: 1 - 0.999 in float32 is off by 1e-5 of itself.
            updates = self._index_update_count[index]
            by_mean, by_square = (1 - float(np.float32(beta)) ** updates for beta in (self.beta1, self.beta2))
            rate, epsilon = rate * math.sqrt(by_square) / by_mean, epsilon * math.sqrt(by_square)
        mx.nd.adam_update(
            weight,
            grad,
            *state,
            out=weight,
            lr=rate,
            wd=self._get_wd(index),
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=epsilon,
            rescale_grad=self.rescale_grad,
        )


class Defined(mx.optimizer.Optimizer):
    """Every optimiser word by word as it is specified."""

    def __init__(self, spec: Optimizer, **settings: Any) -> None:
        super().__init__(**settings)
        self._spec = spec

    def create_state(self, index: int, weight: mx.nd.NDArray) -> Any:  # noqa: ARG002
        """A first and a second moment."""
        return mx.nd.zeros_like(weight), mx.nd.zeros_like(weight)

    def update(self, index: int, weight: mx.nd.NDArray, grad: mx.nd.NDArray, state: Any) -> None:
        """One update of one array."""
        self._update_count(index)
        spec, rate, updates = self._spec, self._get_lr(index), self._index_update_count[index]
        first, second = state
        gradient = grad * self.rescale_grad + weight * self._get_wd(index)
        if isinstance(spec, SGD):
            scale = rate if spec.momentum_form == "velocity" else 1.0
            first[:] = first * spec.momentum + gradient * scale
            weight[:] = weight - first * (rate / scale)
        elif isinstance(spec, Adam):
            first[:] = first * spec.beta1 + gradient * (1 - spec.beta1)
            second[:] = second * spec.beta2 + mx.nd.square(gradient) * (1 - spec.beta2)
            root = mx.nd.sqrt(second / (1 - spec.beta2**updates))
            weight[:] = weight - first * (rate / (1 - spec.beta1**updates)) / (root + spec.epsilon)
        else:
            second[:] = second * spec.rho + mx.nd.square(gradient) * (1 - spec.rho)
            weight[:] = weight - gradient * rate / (mx.nd.sqrt(second) + spec.epsilon)
