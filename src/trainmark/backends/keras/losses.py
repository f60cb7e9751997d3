"""The losses as Keras losses: outputs ``[batch, classes]`` and labels ``[batch]`` to the mean over the batch."""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import ops

from trainmark.errors import assert_never
from trainmark.workload.losses import (
    ClippedCrossEntropy,
    Loss,
    NegativeLogLikelihood,
    SoftmaxCrossEntropy,
    TwoStageCrossEntropy,
)


def build(loss: Loss | None) -> keras.losses.Loss:
    """The loss of a specification; without one, the mean of the outputs."""
    match loss:
        case None:
            return MeanLoss()
        case SoftmaxCrossEntropy():
            return keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        case NegativeLogLikelihood():
            return LikelihoodLoss()
        # Keras's own cross-entropy on probabilities goes back to the logits if it can find them, and clips nothing.
        case ClippedCrossEntropy():
            return ClippedLoss(loss.epsilon)
        case TwoStageCrossEntropy():
            return TwoStageLoss()
        case _:
            assert_never(loss)


class MeanLoss(keras.losses.Loss):
    """The mean of the outputs, whatever the labels are."""

    def call(self, y_true: Any, y_pred: Any) -> Any:  # noqa: ARG002
        return ops.mean(y_pred, axis=-1)


class LikelihoodLoss(keras.losses.Loss):
    """``-log p[label]`` of log-probabilities."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return -_true(y_pred, y_true)


class ClippedLoss(keras.losses.Loss):
    """Softmax, clipped, logarithm; an example outside the range has no gradient."""

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self._low, self._high = math.log(epsilon), math.log1p(-epsilon)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        # Clipping log p is clipping p: the same value, and no gradient outside the range either.
        return -ops.clip(_true(ops.log_softmax(y_pred), y_true), self._low, self._high)


class TwoStageLoss(keras.losses.Loss):
    """Softmax, then the logarithm, each with its own gradient."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        # The true class is picked before the logarithm, so that a wrong one that underflows does no harm.
        return -ops.log(_true(ops.softmax(y_pred), y_true))


def _true(values: Any, labels: Any) -> Any:
    return ops.sum(values * ops.one_hot(ops.cast(labels, "int32"), values.shape[-1], dtype=values.dtype), axis=-1)
