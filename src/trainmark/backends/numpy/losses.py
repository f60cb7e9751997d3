"""The losses, term by term as defined, without shortcuts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.errors import assert_never
from trainmark.workload import losses as spec

Array = NDArray[Any]


def loss_and_gradient(
    loss: spec.Loss | None, outputs: Array, labels: NDArray[np.int64]
) -> tuple[Array, Array]:
    """Return the loss of each example, ``[batch]``, and the gradient for ``outputs``.

    It is the gradient of the mean over the batch, or of the sum
    (:func:`trainmark.workload.losses.sums`).

    Args:
        outputs: log-probabilities for ``nll``, logits otherwise, ``[batch, classes]`` or ``[batch,
            length, classes]``.
        labels: true classes, ``[batch]`` or ``[batch, length]``.
    """
    if outputs.ndim > 2:
        each, gradient = loss_and_gradient(
            loss, outputs.reshape(-1, outputs.shape[-1]), labels.ravel()
        )
        return each.reshape(labels.shape).mean(axis=1), gradient.reshape(outputs.shape)
    if loss is None:
        return outputs.mean(axis=1), np.full_like(outputs, 1 / outputs.size)
    match loss:
        case spec.NegativeLogLikelihood():
            return -_true(outputs, labels), -_one_hot(outputs, labels) / len(labels)
        case spec.SoftmaxCrossEntropy():
            probabilities, shifted, total = _softmax(outputs)
            even = outputs.dtype.type(loss.smoothing)
            target = _true(shifted, labels)
            if even:
                target = (1 - even) * target + even * shifted.mean(axis=1)
            wanted = _one_hot(outputs, labels) * (1 - even) + even / outputs.shape[1]
            return np.log(total[:, 0]) - target, (probabilities - wanted) / (
                1 if spec.sums(loss) else len(labels)
            )
        case spec.ClippedCrossEntropy():
            return _clipped(loss.epsilon, _softmax(outputs)[0], labels)
        case spec.TwoStageCrossEntropy():
            return _two_stage(_softmax(outputs)[0], labels)
        case _:
            assert_never(loss)


def _softmax(outputs: Array) -> tuple[Array, Array, Array]:
    """Return probabilities, shifted outputs and the divisor.

    Both arrays are ``[batch, classes]``, outputs minus their maximum, and the divisor is ``[batch,
    1]``.
    """
    shifted = outputs - outputs.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    total = exponentials.sum(axis=1, keepdims=True)
    return exponentials / total, shifted, total


def _two_stage(probabilities: Array, labels: NDArray[np.int64]) -> tuple[Array, Array]:
    """Compute softmax, then log, with separate gradients.

    As published, 1/p may overflow and p·(d - Σ d·p) be NaN.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        true = _true(probabilities, labels)
        by_probability = _one_hot(probabilities, labels) * (-1 / true[:, None])
        return -np.log(true), _through_softmax(probabilities, by_probability) / len(labels)


def _clipped(
    epsilon: float, probabilities: Array, labels: NDArray[np.int64]
) -> tuple[Array, Array]:
    low, high = (probabilities.dtype.type(bound) for bound in (epsilon, 1 - epsilon))
    total = probabilities.sum(axis=1, keepdims=True)
    normal = probabilities / total
    true = _true(normal, labels)
    inside = (true >= low) & (true <= high)
    with np.errstate(divide="ignore", over="ignore"):
        slope = np.where(inside, -1 / true, 0)
    by_normal = _one_hot(normal, labels) * slope[:, None]
    by_probability = (by_normal - (by_normal * normal).sum(axis=1, keepdims=True)) / total
    return -np.log(np.clip(true, low, high)), _through_softmax(probabilities, by_probability) / len(
        labels
    )


def _through_softmax(probabilities: Array, by_probability: Array) -> Array:
    return probabilities * (
        by_probability - (by_probability * probabilities).sum(axis=1, keepdims=True)
    )


def _true(values: Array, labels: NDArray[np.int64]) -> Array:
    return values[np.arange(len(labels)), labels]


def _one_hot(like: Array, labels: NDArray[np.int64]) -> Array:
    hot = np.zeros_like(like)
    hot[np.arange(len(labels)), labels] = 1
    return hot
