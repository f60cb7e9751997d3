"""The losses on JAX, as means over the batch."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from trainmark.errors import assert_never
from trainmark.workload import losses as spec


def build(loss: spec.Loss | None) -> Callable[[Array, Array], Array]:
    """Return a function of outputs ``[batch, ..., classes]`` and labels ``[batch, ...]`` that
    returns the mean loss.
    """
    if loss is None:
        return lambda outputs, _: outputs.mean()
    match loss:
        case spec.NegativeLogLikelihood():
            return lambda outputs, labels: -_true(outputs, labels).mean()
        case spec.SoftmaxCrossEntropy(smoothing=0):
            return lambda logits, labels: -_true(jax.nn.log_softmax(logits), labels).mean()
        case spec.SoftmaxCrossEntropy(smoothing=even):

            def smoothed(logits: Array, labels: Array) -> Array:
                logs = jax.nn.log_softmax(logits)
                return -((1 - even) * _true(logs, labels).mean() + even * logs.mean())

            return smoothed
        case spec.ClippedCrossEntropy():
            bounds = loss.log_bounds
            return lambda logits, labels: (
                -jnp.clip(_true(jax.nn.log_softmax(logits), labels), *bounds).mean()
            )
        case spec.TwoStageCrossEntropy():
            return lambda logits, labels: -jnp.log(_true(jax.nn.softmax(logits), labels)).mean()
        case _:
            assert_never(loss)


def _true(values: Array, labels: Array) -> Array:
    return jnp.take_along_axis(values, labels[..., None], axis=-1)[..., 0]
