"""The losses as Keras losses, which return the mean over the batch.

Outputs are ``[batch, classes]`` and labels ``[batch]``.

For text, outputs are ``[batch, length, classes]``, and the mean is over all tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from trainmark.errors import assert_never
from trainmark.workload import losses as spec


class PerExample(keras.losses.Loss):
    """A loss per example, given as a function of outputs and labels."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self._function = function

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return self._function(y_pred, y_true)


def build(loss: spec.Loss | None) -> keras.losses.Loss:
    """Return the loss of a specification.

    None stands for a network that is trained without its loss, to time the rest; then the mean of
    the outputs is differentiated.
    """
    match loss:
        case None:
            return PerExample(_mean)
        case spec.SoftmaxCrossEntropy():
            if loss.smoothing:  # not supported by Keras's sparse loss
                smoothing = loss.smoothing

                def smoothed(logits: Any, labels: Any) -> Any:
                    return _smoothed(ops.log_softmax(logits), labels, smoothing)

                return PerExample(smoothed)
            return keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        case spec.NegativeLogLikelihood():
            return PerExample(_negative_log_likelihood)
        # Keras's cross-entropy on probabilities uses the logits if it can find them, and doesn't
        # clip.
        case spec.ClippedCrossEntropy():
            bounds = loss.log_bounds

            def clipped(logits: Any, labels: Any) -> Any:
                return -ops.clip(_true(ops.log_softmax(logits), labels), *bounds)

            return PerExample(clipped)
        case spec.TwoStageCrossEntropy():
            return PerExample(_two_stage_cross_entropy)
        case _:
            assert_never(loss)


def _mean(outputs: Any, _: Any) -> Any:
    return ops.mean(outputs, axis=-1)


def _negative_log_likelihood(outputs: Any, labels: Any) -> Any:
    return -_true(outputs, labels)


def _two_stage_cross_entropy(logits: Any, labels: Any) -> Any:
    # The true class is picked before the logarithm, so that underflow of another class does no
    # harm.
    return -ops.log(_true(ops.softmax(logits), labels))


def _smoothed(logs: Any, labels: Any, share: float) -> Any:
    even = ops.sum(logs, axis=-1) / logs.shape[-1]
    return -((1 - share) * _true(logs, labels) + share * even)


def _true(values: Any, labels: Any) -> Any:
    return ops.sum(
        values * ops.one_hot(ops.cast(labels, "int32"), values.shape[-1], dtype=values.dtype),
        axis=-1,
    )
