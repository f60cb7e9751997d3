"""The optimisers of :mod:`trainmark.workload.optimizers` as pure functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from trainmark.backends.jax.network import Parameters
from trainmark.errors import assert_never
from trainmark.workload import optimizers as definitions

State = dict[str, Parameters]
"""The states of an optimiser by name, such as ``momentum``; each has an array per weight."""
Update = Callable[[Parameters, State, Parameters, Array], tuple[Parameters, State]]
"""``(weights, state, gradients, step)`` to new weights and state; ``step`` counts from 0."""


GRADIENTS = "gradients"
"""Name of the gradients of the last step, where an optimiser keeps them among its states."""


def build(
    spec: definitions.Optimizer | None, *, keeps_gradients: bool
) -> tuple[tuple[str, ...], Update]:
    """Return the names of an optimiser's states, and its update.

    Args:
        spec: None for an update that changes nothing.
        keeps_gradients: whether to keep them as a state; XLA doesn't compute unused values.
    """
    update = _update(spec)
    names = () if spec is None else definitions.slots_of(spec)
    if not keeps_gradients:
        return names, update

    def keeping(
        weights: Parameters, state: State, gradients: Parameters, step: Array
    ) -> tuple[Parameters, State]:
        weights, state = update(weights, {name: state[name] for name in names}, gradients, step)
        return weights, {**state, GRADIENTS: gradients}

    return (*names, GRADIENTS), keeping


def _update(spec: definitions.Optimizer | None) -> Update:
    match spec:
        case None:
            return _no_update
        case definitions.SGD():
            update = functools.partial(_sgd, spec)
        case definitions.Adam() | definitions.AdamW():
            update = functools.partial(_adam, spec)
        case definitions.RMSprop():
            update = functools.partial(_rmsprop, spec)
        case _:
            assert_never(spec)
    norm = spec.clip_norm
    if norm is None:
        return update

    def clipped_update(
        weights: Parameters, state: State, gradients: Parameters, step: Array
    ) -> tuple[Parameters, State]:
        return update(weights, state, _clipped(gradients, norm), step)

    return clipped_update


def _no_update(
    weights: Parameters,
    state: State,
    gradients: Parameters,  # noqa: ARG001
    step: Array,  # noqa: ARG001
) -> tuple[Parameters, State]:
    return weights, state


def _clipped(gradients: Parameters, most: float) -> Parameters:
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(each)) for each in gradients.values()))
    share = jnp.minimum(1, most / (norm + definitions.CLIP_EPSILON))
    return _each(lambda g: g * share, gradients)


def _sgd(
    spec: definitions.SGD, weights: Parameters, state: State, gradients: Parameters, step: Array
) -> tuple[Parameters, State]:
    rate = _rate(spec, step, weights)
    decays = {
        name: definitions.weight_decay_of(spec, name, weight.ndim)
        for name, weight in weights.items()
    }
    gradients = {
        name: g + decays[name] * weights[name] if decays[name] else g
        for name, g in gradients.items()
    }
    if not spec.momentum:
        return _each(lambda w, g: w - rate * g, weights, gradients), state
    if spec.momentum_form == "buffer":
        momentum = _each(lambda b, g: spec.momentum * b + g, state["momentum"], gradients)
        taken = momentum
        if spec.nesterov:
            taken = _each(lambda b, g: g + spec.momentum * b, momentum, gradients)
        return _each(lambda w, b: w - rate * b, weights, taken), {"momentum": momentum}
    momentum = _each(lambda v, g: spec.momentum * v - rate * g, state["momentum"], gradients)
    moved = momentum
    if spec.nesterov:
        moved = _each(lambda v, g: spec.momentum * v - rate * g, momentum, gradients)
    return _each(jnp.add, weights, moved), {"momentum": momentum}


def _adam(
    spec: definitions.Adam | definitions.AdamW,
    weights: Parameters,
    state: State,
    gradients: Parameters,
    step: Array,
) -> tuple[Parameters, State]:
    rate = _rate(spec, step, weights)
    decays = {
        name: definitions.weight_decay_of(spec, name, weight.ndim)
        for name, weight in weights.items()
    }
    weights = {
        name: w * (1 - rate * decays[name]) if decays[name] else w for name, w in weights.items()
    }
    mean = _each(lambda m, g: spec.beta1 * m + (1 - spec.beta1) * g, state["mean"], gradients)
    square = _each(
        lambda v, g: spec.beta2 * v + (1 - spec.beta2) * g * g, state["square"], gradients
    )
    t = (step + 1).astype(rate.dtype)
    mean_share = _one_minus_power(spec.beta1, t)
    square_share = _one_minus_power(spec.beta2, t)
    moved = _each(
        lambda m, v: rate * (m / mean_share) / (jnp.sqrt(v / square_share) + spec.epsilon),
        mean,
        square,
    )
    return _each(jnp.subtract, weights, moved), {"mean": mean, "square": square}


def _rmsprop(
    spec: definitions.RMSprop, weights: Parameters, state: State, gradients: Parameters, step: Array
) -> tuple[Parameters, State]:
    rate = _rate(spec, step, weights)
    square = _each(lambda a, g: spec.rho * a + (1 - spec.rho) * g * g, state["square"], gradients)
    weights = _each(
        lambda w, g, a: w - rate * g / (jnp.sqrt(a) + spec.epsilon), weights, gradients, square
    )
    return weights, {"square": square}


def _each(function: Callable[..., Array], *trees: Parameters) -> Parameters:
    return jax.tree.map(function, *trees)


def _rate(spec: definitions.Optimizer, step: Array, weights: Parameters) -> Array:
    dtype: Any = next(iter(weights.values())).dtype
    if spec.lr_schedule is not None:
        lr_schedule = definitions.learning_rates(spec.lr_schedule, spec.learning_rate)
        return jnp.asarray(lr_schedule, dtype)[jnp.minimum(step, len(lr_schedule) - 1)]
    rate = jnp.asarray(spec.learning_rate, dtype)
    if spec.staircase is None:
        return rate
    stairs = (step // spec.staircase.steps).astype(dtype)
    return rate * jnp.asarray(spec.staircase.factor, dtype) ** stairs


def _one_minus_power(beta: float, t: Array) -> Array:
    """Return ``1 - betaᵗ``, without float32 cancellation while ``betaᵗ`` is near 1."""
    return -jnp.expm1(t * math.log(beta)) if beta else jnp.ones_like(t)
