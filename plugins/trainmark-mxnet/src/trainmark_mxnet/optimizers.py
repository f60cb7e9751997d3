"""The optimisers: MXNet's if they match the definition, otherwise written out.

MXNet's update operators use float32 for rate, decay and momentum, whatever the type of the weights.
So for float64 the definition is written out with array operators, which accept float64 numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import mxnet as mx
import numpy as np

from trainmark.errors import Unsupported
from trainmark.workload.model import Model
from trainmark.workload.optimizers import SGD, Adam, Optimizer, RMSprop, Staircase, learning_rate_at
from trainmark_mxnet.network import bias, kernel


def build(
    spec: Optimizer, model: Model, names: list[str], *, batch: int, float64: bool
) -> mx.optimizer.Optimizer:
    """Build the optimiser of ``spec``.

    Args:
        names: names of the parameters, in update order.
        batch: number of examples in the sum of gradients.
    """
    settings = {
        "learning_rate": spec.learning_rate,
        "lr_scheduler": Rate(spec) if spec.staircase else None,
        "rescale_grad": 1 / batch,
        "wd": 1.0,
        "param_idx2name": dict(enumerate(names)),
    }
    match spec:
        case _ if float64:
            optimizer = Defined(spec, **settings)
        # MXNet's momentum includes past rates
        case SGD(momentum_form="buffer", staircase=Staircase()):
            optimizer = Defined(spec, **settings)
        case SGD():
            optimizer = mx.optimizer.SGD(momentum=spec.momentum, **settings)
        case Adam():
            optimizer = Moments(spec.beta1, spec.beta2, spec.epsilon, corrected=True, **settings)
        case RMSprop():
            optimizer = Moments(0.0, spec.rho, spec.epsilon, corrected=False, **settings)
        case _:
            raise Unsupported(f"MXNet does not have the optimiser {spec.kind!r}")
    optimizer.set_wd_mult(_decays(spec, model))
    return optimizer


def slot_arrays(
    updater: mx.optimizer.Updater, slot: str, weights: Mapping[str, mx.nd.NDArray]
) -> dict[str, mx.nd.NDArray]:
    """Return MXNet's array for a slot of each weight, in update order; MXNet creates them at the
    first update."""
    arrays = {}
    for index, (name, weight) in enumerate(weights.items()):
        if index not in updater.states:
            updater.states[index] = updater.optimizer.create_state_multi_precision(index, weight)
            updater.states_synced[index] = True
        state = updater.states[index]
        arrays[name] = state[1 if slot == "square" else 0] if isinstance(state, tuple) else state
    return arrays


def scale_of(spec: Optimizer, optimizer: mx.optimizer.Optimizer) -> float:
    """Return a slot as a multiple of MXNet's array: momentum may have another sign, or include the
    constant rate."""
    if not isinstance(spec, SGD):
        return 1.0
    velocity = spec.momentum_form == "velocity"
    if isinstance(optimizer, Defined):
        return -1.0 if velocity else 1.0
    return 1.0 if velocity else -1 / spec.learning_rate


def _decays(spec: Optimizer, model: Model) -> dict[str, float]:
    """Return the factor of each weight that is added to its gradient: weight decay, and the
    gradient of L2 terms."""
    everywhere = 0.0
    biases = 0.0
    if isinstance(spec, SGD):
        everywhere = spec.weight_decay
        biases = everywhere if spec.decay_biases else 0.0
    decays = {kernel(plan): everywhere + plan.l2 for plan in model.weighted_layers}
    return decays | {bias(plan): biases for plan in model.weighted_layers}


class Rate(mx.lr_scheduler.LRScheduler):
    """The staircase schedule; MXNet's ``FactorScheduler`` stops at 1e-8."""

    def __init__(self, spec: Optimizer) -> None:
        super().__init__(spec.learning_rate)
        self._spec = spec

    def __call__(self, num_update: int) -> float:
        """Return the rate of an update, counted from 1."""
        return learning_rate_at(self._spec, num_update - 1)


class Moments(mx.optimizer.Adam):
    """Adam and RMSprop with MXNet's fused ``adam_update``, with ε as in the definitions.

    MXNet's Adam adds ε to the root of the uncorrected moment; its RMSProp adds ε inside the root.
    By definition, RMSprop is Adam without first moment and bias corrections.
    """

    def __init__(
        self, beta1: float, beta2: float, epsilon: float, *, corrected: bool, **settings: Any
    ) -> None:
        super().__init__(beta1=beta1, beta2=beta2, epsilon=epsilon, **settings)
        self._corrected = corrected

    def update(self, index: int, weight: mx.nd.NDArray, grad: mx.nd.NDArray, state: Any) -> None:
        """Update one array."""
        self._update_count(index)
        rate = self._get_lr(index)
        epsilon = self.epsilon
        if self._corrected:
            # The operator rounds the betas to float32, where 1 - 0.999 has a relative error of
            # 1e-5.
            updates = self._index_update_count[index]
            by_mean, by_square = (
                1 - float(np.float32(beta)) ** updates for beta in (self.beta1, self.beta2)
            )
            rate = rate * math.sqrt(by_square) / by_mean
            epsilon = epsilon * math.sqrt(by_square)
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
    """All optimisers, written out from their definitions."""

    def __init__(self, spec: Optimizer, **settings: Any) -> None:
        super().__init__(**settings)
        self._spec = spec

    def create_state(self, index: int, weight: mx.nd.NDArray) -> Any:  # noqa: ARG002
        """Create a first and a second moment."""
        return mx.nd.zeros_like(weight), mx.nd.zeros_like(weight)

    def update(self, index: int, weight: mx.nd.NDArray, grad: mx.nd.NDArray, state: Any) -> None:
        """Update one array."""
        self._update_count(index)
        spec = self._spec
        rate = self._get_lr(index)
        updates = self._index_update_count[index]
        first, second = state
        gradient = grad * self.rescale_grad + weight * self._get_wd(index)
        match spec:
            case SGD():
                scale = rate if spec.momentum_form == "velocity" else 1.0
                first[:] = first * spec.momentum + gradient * scale
                weight[:] = weight - first * (rate / scale)
            case Adam():
                first[:] = first * spec.beta1 + gradient * (1 - spec.beta1)
                second[:] = second * spec.beta2 + mx.nd.square(gradient) * (1 - spec.beta2)
                root = mx.nd.sqrt(second / (1 - spec.beta2**updates))
                weight[:] = weight - first * (rate / (1 - spec.beta1**updates)) / (
                    root + spec.epsilon
                )
            case RMSprop():
                second[:] = second * spec.rho + mx.nd.square(gradient) * (1 - spec.rho)
                weight[:] = weight - gradient * rate / (mx.nd.sqrt(second) + spec.epsilon)
            case _:
                raise Unsupported(f"MXNet does not have the optimiser {spec.kind!r}")
