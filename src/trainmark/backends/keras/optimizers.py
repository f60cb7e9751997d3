"""The optimisers on Keras: built-in ones if they match the definition, else subclasses.

Numbers are passed to Keras as NumPy's: on TensorFlow it converts a plain float to float32 before
float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from trainmark.errors import assert_never
from trainmark.workload import optimizers as definitions


def build(
    spec: definitions.Optimizer, average: definitions.WeightAverage | None, keys: Sequence[str]
) -> keras.optimizers.Optimizer:
    """Build the optimiser of ``spec``, which also keeps the average of the weights if there is one.

    Args:
        keys: those of the trained weights, in Keras's order.
    """
    match spec:
        case definitions.SGD():
            # Keras's momentum is the velocity form; the buffer form is the same while the learning
            # rate is constant.
            changes = spec.momentum and (spec.staircase or spec.lr_schedule)
            same = spec.momentum_form == "velocity" or not changes
            plain = not (spec.weight_decay or spec.groups or spec.clip_norm)
            if same and plain and average is None:
                return keras.optimizers.SGD(
                    _learning_rate(spec), np.float64(spec.momentum), spec.nesterov
                )
            return DefinedSGD(spec, average, keys)
        case definitions.Adam() | definitions.AdamW():
            return DefinedAdam(spec, average, keys)
        case definitions.RMSprop():
            return DefinedRMSprop(spec, average, keys)
        case _:
            assert_never(spec)


class Still(keras.optimizers.Optimizer):
    """Updates nothing."""

    def __init__(self) -> None:
        super().__init__(1.0)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Do nothing."""


def keeping_gradients(optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
    """Return ``optimizer`` as one that keeps the gradients of the last step in ``kept``.

    It must not be built yet.

    A compiler would remove unused ones.
    """
    own: Any = type(optimizer)

    class Keeping(own):
        def build(self, variables: list[Any]) -> None:
            if not self.built:
                super().build(variables)
                self.kept = self.add_optimizer_variables(variables, "gradient")

        def apply(self, grads: Any, trainable_variables: Any = None) -> None:
            for kept, gradient in zip(self.kept, map(_dense, grads), strict=True):
                self.assign(kept, gradient)
            super().apply(grads, trainable_variables)

    optimizer.__class__ = Keeping
    return optimizer


def slots(
    optimizer: keras.optimizers.Optimizer, spec: definitions.Optimizer
) -> dict[str, tuple[list[Any], float]]:
    """Return Keras's arrays of each slot, and the slot as a multiple of them.

    The arrays are in the order of the weights.
    """
    if isinstance(optimizer, Defined):
        return {
            name: (arrays, 1.0)
            for name, arrays in zip(definitions.slots_of(spec), optimizer.slots, strict=True)
        }
    assert isinstance(spec, definitions.SGD), "all others are defined here"
    # Keras's is the velocity
    form = 1.0 if spec.momentum_form == "velocity" else -1 / spec.learning_rate
    return dict.fromkeys(definitions.slots_of(spec), (optimizer.momentums, form))


def reset(optimizer: keras.optimizers.Optimizer, weights: list[Any]) -> None:
    """Reset the state to zero, in place, and the average to ``weights``, as in a new optimiser."""
    for variable in optimizer.variables:
        if variable is not optimizer.learning_rate:
            variable.assign(ops.zeros(variable.shape, variable.dtype))
    for average, weight in zip(averages(optimizer), weights, strict=False):
        average.assign(ops.copy(weight))  # JAX must not get the same array twice


def averages(optimizer: keras.optimizers.Optimizer) -> list[Any]:
    """Return the averaged weights, in the order of the weights; empty without an average."""
    return optimizer.averages if isinstance(optimizer, Defined) else []


class Table(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate of each update; the last one holds for all later ones."""

    def __init__(self, rates: Sequence[float]) -> None:
        self._rates = ops.convert_to_tensor(np.array(rates, keras.config.floatx()))
        self._last = len(rates) - 1

    def __call__(self, step: Any) -> Any:
        return ops.take(self._rates, ops.minimum(ops.cast(step, "int32"), self._last))


def _learning_rate(spec: definitions.Optimizer) -> Any:
    if spec.lr_schedule is not None:
        return Table(definitions.learning_rates(spec.lr_schedule, spec.learning_rate))
    if spec.staircase is None:
        return float(spec.learning_rate)
    exact = np.dtype(keras.config.floatx()).type
    return keras.optimizers.schedules.ExponentialDecay(
        exact(spec.learning_rate),
        spec.staircase.steps,
        exact(spec.staircase.factor),
        staircase=True,
    )


class Defined(keras.optimizers.Optimizer):
    """Base of the optimisers below: learning rate, clipping, state, and the average of the weights.

    Keras also has a weight average, but its decay does not grow with the steps, and Keras clips
    without an epsilon.
    """

    def __init__(
        self, spec: Any, average: definitions.WeightAverage | None, keys: Sequence[str]
    ) -> None:
        super().__init__(_learning_rate(spec))
        self._spec = spec
        self._average = average
        self._keys = tuple(keys)
        self.averages: list[Any] = []

    def build(self, variables: list[Any]) -> None:
        """Allocate the state."""
        if self.built:
            return
        super().build(variables)
        self.slots = [
            self.add_optimizer_variables(variables, name)
            for name in definitions.slots_of(self._spec)
        ]
        self._decays = [
            definitions.weight_decay_of(self._spec, key, len(variable.shape))
            for key, variable in zip(self._keys, variables, strict=True)
        ]
        if self._average is not None:
            self.averages = self.add_optimizer_variables(variables, "average")

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Apply one update, and update the average."""
        super().apply(
            _clipped([_dense(each) for each in grads], self._spec.clip_norm), trainable_variables
        )
        if self._average is None:
            return
        for weight, average in zip(self._trainable_variables, self.averages, strict=True):
            done = ops.cast(self.iterations, weight.dtype)  # this already includes the update
            share = 1 - ops.minimum(done / (9 + done), self._average.decay)
            self.assign(average, average + share * (weight - average))

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update one variable."""
        index = self._get_variable_index(variable)
        rate = ops.cast(learning_rate, variable.dtype)
        self._move(
            variable, gradient, rate, self._decays[index], *(slot[index] for slot in self.slots)
        )

    def _move(self, variable: Any, gradient: Any, rate: Any, decay: float, *state: Any) -> None:
        raise NotImplementedError


class DefinedSGD(Defined):
    """Both forms of momentum, with weight decay added to the gradient.

    Keras's decay is decoupled.
    """

    def _move(self, variable: Any, gradient: Any, rate: Any, decay: float, *state: Any) -> None:
        spec: definitions.SGD = self._spec
        if decay:
            gradient = gradient + decay * variable
        if not state:
            self.assign_sub(variable, rate * gradient)
        elif spec.momentum_form == "buffer":
            self.assign(state[0], spec.momentum * state[0] + gradient)
            self.assign_sub(
                variable,
                rate * (gradient + spec.momentum * state[0] if spec.nesterov else state[0]),
            )
        else:
            self.assign(state[0], spec.momentum * state[0] - rate * gradient)
            self.assign_add(
                variable, spec.momentum * state[0] - rate * gradient if spec.nesterov else state[0]
            )


class DefinedAdam(Defined):
    """Adam with ε outside the root of the corrected moment.

    Keras adds it to the root of the uncorrected one.
    """

    def _move(self, variable: Any, gradient: Any, rate: Any, decay: float, *state: Any) -> None:
        spec: definitions.Adam | definitions.AdamW = self._spec
        mean, square = state
        if decay:
            self.assign_sub(variable, rate * decay * variable)
        t = ops.cast(self.iterations + 1, variable.dtype)
        self.assign(mean, spec.beta1 * mean + (1 - spec.beta1) * gradient)
        self.assign(square, spec.beta2 * square + (1 - spec.beta2) * ops.square(gradient))
        root = ops.sqrt(square / _one_minus_power(spec.beta2, t))
        self.assign_sub(
            variable, rate * (mean / _one_minus_power(spec.beta1, t)) / (root + spec.epsilon)
        )


class DefinedRMSprop(Defined):
    """RMSprop with ε outside the root; Keras adds it inside."""

    def _move(self, variable: Any, gradient: Any, rate: Any, decay: float, *state: Any) -> None:  # noqa: ARG002
        spec: definitions.RMSprop = self._spec
        (square,) = state
        self.assign(square, spec.rho * square + (1 - spec.rho) * ops.square(gradient))
        self.assign_sub(variable, rate * gradient / (ops.sqrt(square) + spec.epsilon))


def _dense(gradient: Any) -> Any:
    """Return a gradient with all rows.

    TensorFlow's of a table has a row for each token, so some are there twice.
    """
    if hasattr(gradient, "dense_shape"):
        return ops.zeros(gradient.shape, gradient.dtype) + gradient
    return gradient


def _clipped(gradients: Sequence[Any], most: float | None) -> Sequence[Any]:
    """Clip gradients to the global norm ``most``."""
    if most is None:
        return gradients
    norm = ops.sqrt(sum(ops.sum(ops.square(gradient)) for gradient in gradients))
    share = ops.minimum(most / (norm + definitions.CLIP_EPSILON), 1)
    return [gradient * share for gradient in gradients]


def _one_minus_power(base: float, t: Any) -> Any:
    """Return ``1 - baseᵗ``.

    A plain difference loses four of float32's seven digits if ``base`` is 0.999.
    """
    return -ops.expm1(t * (math.log(base) if base else -math.inf))
