"""The losses on JAX, as means over the batch."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from trainmark.errors import assert_never
from trainmark.workload import losses as spec


def build(loss: spec.Loss | None) -> Callable[[Array, Array], Array]:
    """Return a function of outputs and labels that returns the mean loss.

    Outputs are ``[batch, ..., classes]`` and labels ``[batch, ...]``.
    """
    match loss:
        case None:
            return _mean
        case spec.NegativeLogLikelihood():
            return _negative_log_likelihood
        case spec.SoftmaxCrossEntropy(smoothing=0):
            return _cross_entropy
        case spec.SoftmaxCrossEntropy(smoothing=even):

            def smoothed(logits: Array, labels: Array) -> Array:
                logs = jax.nn.log_softmax(logits)
                return -((1 - even) * _true(logs, labels).mean() + even * logs.mean())

            return smoothed
        case spec.ClippedCrossEntropy():
            bounds = loss.log_bounds

            def clipped(logits: Array, labels: Array) -> Array:
                return -jnp.clip(_true(jax.nn.log_softmax(logits), labels), *bounds).mean()

            return clipped
        case spec.TwoStageCrossEntropy():
            return _two_stage_cross_entropy
        case _:
            assert_never(loss)


def _mean(outputs: Array, _: Array) -> Array:
    return outputs.mean()


def _negative_log_likelihood(outputs: Array, labels: Array) -> Array:
    return -_true(outputs, labels).mean()


def _cross_entropy(logits: Array, labels: Array) -> Array:
    return -_true(jax.nn.log_softmax(logits), labels).mean()


def _two_stage_cross_entropy(logits: Array, labels: Array) -> Array:
    return -jnp.log(_true(jax.nn.softmax(logits), labels)).mean()


def _true(values: Array, labels: Array) -> Array:
    return jnp.take_along_axis(values, labels[..., None], axis=-1)[..., 0]
