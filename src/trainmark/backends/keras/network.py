"""The network as a ``keras.Sequential``. Keras computes in the canonical layout, so weights are not converted."""

from __future__ import annotations

import functools
import operator
from typing import Any

import keras
import numpy as np
from keras import ops

from trainmark.errors import assert_never
from trainmark.workload import layers as spec
from trainmark.workload.model import LayerPlan, Model, Weights


def build(model: Model) -> Learner:
    """Build the network of ``model``, with its layer names."""
    return Learner([keras.Input(model.input_shape), *(_layer(plan) for plan in model.layers)])


def load_weights(network: Learner, model: Model, weights: Weights) -> None:
    """Copy canonical weights into the network, in place."""
    for plan in model.weighted_layers:
        layer = network.get_layer(plan.name)
        layer.kernel.assign(weights[plan.kernel_name])
        layer.bias.assign(weights[plan.bias_name])


def read_weights(network: Learner, model: Model) -> Weights:
    """Return the network's weights as float32."""
    weights: Weights = {}
    for plan in model.weighted_layers:
        layer = network.get_layer(plan.name)
        weights[plan.kernel_name] = np.array(ops.convert_to_numpy(layer.kernel.value), dtype=np.float32)
        weights[plan.bias_name] = np.array(ops.convert_to_numpy(layer.bias.value), dtype=np.float32)
    return weights


class Learner(keras.Sequential):
    """A network that also reports the loss of each single batch; the loss of ``fit`` is a mean since the epoch's
    start."""

    def __init__(self, layers: list[Any]) -> None:
        super().__init__(layers)
        self._batch_loss = Latest(name="batch_loss")
        self._batch_l2_loss = Latest(name="batch_l2_loss")
        self.has_l2 = any(weight.regularizer is not None for weight in self.trainable_weights)

    def compute_loss(
        self,
        x: Any = None,  # noqa: ARG002
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Return the mean loss of the batch; in training with the L2 terms, and kept for the results of the step."""
        loss = self.loss(y, y_pred, sample_weight)
        if not training:
            return loss
        if self.has_l2:
            l2_loss = functools.reduce(operator.add, self.losses)
            self._batch_l2_loss.update_state(l2_loss)
            loss = loss + l2_loss
        self._batch_loss.update_state(loss)
        return loss


class Latest(keras.metrics.Metric):
    """The value of the last batch, which other metrics do not report."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self._value = self.add_variable((), "zeros", name="value")

    def update_state(self, value: Any) -> None:
        """Set the value of a batch."""
        self._value.assign(value)

    def result(self) -> Any:
        """Return a copy of that value, which the next batch does not change."""
        return ops.copy(self._value)


class L2(keras.regularizers.Regularizer):
    """``factor/2 · ‖kernel‖²``; Keras's version rounds the factor to float32 on TensorFlow."""

    def __init__(self, factor: float) -> None:
        self._factor = factor

    def __call__(self, x: Any) -> Any:
        return 0.5 * self._factor * ops.sum(ops.square(x))


class LocalResponseNormalization(keras.layers.Layer):
    """``y = x / (bias + alpha · Σ x²)^beta``, which Keras does not have."""

    def __init__(self, layer: spec.LocalResponseNorm, name: str) -> None:
        super().__init__(name=name)
        self._layer = layer

    def call(self, x: Any) -> Any:
        """Normalise images ``[batch, height, width, channels]``; the sums are a product with a band matrix of ones."""
        channels = np.arange(x.shape[-1])
        band = np.abs(np.subtract.outer(channels, channels)) <= self._layer.radius
        sums = ops.matmul(ops.square(x), ops.cast(band, x.dtype))
        return x * ops.power(self._layer.bias + self._layer.alpha * sums, -self._layer.beta)


def _layer(plan: LayerPlan) -> keras.Layer:
    layers, name, images = keras.layers, plan.name, {"name": plan.name, "data_format": "channels_last"}
    match layer := plan.layer:
        case spec.Dense():
            return layers.Dense(layer.units, kernel_regularizer=_l2(layer.l2), name=name)
        case spec.Conv2D():
            return layers.Conv2D(
                layer.filters, layer.size, padding=layer.padding, kernel_regularizer=_l2(layer.l2), **images
            )
        case spec.MaxPool():
            return layers.MaxPooling2D(layer.size, layer.stride, layer.padding, **images)
        case spec.LocalResponseNorm():
            return LocalResponseNormalization(layer, name)
        case spec.Dropout():
            return layers.Dropout(layer.rate, name=name)
        case spec.ChannelDropout():
            return layers.SpatialDropout2D(layer.rate, **images)
        case spec.ReLU():
            return layers.ReLU(name=name)
        case spec.Flatten():
            return layers.Flatten(**images)
        case spec.LogSoftmax():
            return layers.Activation("log_softmax", name=name)
        case _:
            assert_never(layer)


def _l2(factor: float) -> L2 | None:
    return L2(factor) if factor else None
