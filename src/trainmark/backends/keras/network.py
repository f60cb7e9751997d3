"""The network as a ``keras.Sequential``.

Keras computes in the canonical layout, so weights are not converted.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from trainmark.backends.keras.pixels import mean
from trainmark.errors import assert_never
from trainmark.workload import layers as spec
from trainmark.workload.model import LayerPlan, Model

_ATTRIBUTES = {
    "scale": "gamma",
    "shift": "beta",
    "mean": "moving_mean",
    "variance": "moving_variance",
    "table": "embeddings",
}
"""Weights whose names differ in Keras."""


def build(model: Model, *, sums_loss: bool = False) -> Learner:
    """Build the network of ``model``, with its layer names."""
    takes_tokens = isinstance(model.layers[0].layer, spec.TokenEmbedding)
    given = keras.Input(model.input_shape, dtype="int32" if takes_tokens else None)
    made: dict[str, keras.Layer] = {}
    return Learner([given, *(_layer(plan, made) for plan in model.layers)], sums_loss=sums_loss)


def weights(network: Learner, model: Model) -> dict[str, Any]:
    """Return the variable of each weight, by its key."""
    found: dict[str, Any] = {}
    for plan, layer in zip(model.every_layer, _every(network.layers), strict=True):
        for name in plan.weights:
            found[plan.key(name)] = getattr(layer, _ATTRIBUTES.get(name, name))
    return found


def outputs(layers: Sequence[Any], x: Any, *, training: bool) -> Iterator[tuple[str, Any]]:
    """Yield the name of each layer and its output, those inside a residual before it."""
    for layer in layers:
        if isinstance(layer, Residual):
            branches = [
                dict(outputs(branch, x, training=training)) or {"": x}
                for branch in (layer.body, layer.shortcut)
            ]
            for branch in branches:
                yield from ((name, y) for name, y in branch.items() if name)
            x = operator.add(*(list(branch.values())[-1] for branch in branches))
        else:
            x = layer(x, training=training)
        yield layer.name, x


class Learner(keras.Sequential):
    """A network that also reports the loss of each single batch.

    The loss of ``fit`` is a mean since the epoch's start.
    """

    def __init__(self, layers: list[Any], *, sums_loss: bool) -> None:
        super().__init__(layers)
        self._sums_loss = sums_loss
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
        """Return the mean loss of the batch.

        In training it includes the L2 terms, and is kept for the results of the step.
        """
        loss = self.loss(y, y_pred, sample_weight)
        if not training:
            return loss
        learned = self.differentiated(loss, y)
        if self.has_l2:
            l2_loss = functools.reduce(operator.add, self.losses)
            self._batch_l2_loss.update_state(l2_loss)
            loss = loss + l2_loss
            learned = learned + l2_loss
        self._batch_loss.update_state(loss)
        return learned

    def differentiated(self, loss: Any, y: Any) -> Any:
        """Return the value to differentiate: the mean loss for the labels ``y``, or the sum."""
        return loss * ops.cast(math.prod(ops.shape(y)), loss.dtype) if self._sums_loss else loss


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
        """Normalise images ``[batch, height, width, channels]``.

        The sums are a product with a band matrix of ones.
        """
        channels = np.arange(x.shape[-1])
        band = np.abs(np.subtract.outer(channels, channels)) <= self._layer.radius
        sums = ops.matmul(ops.square(x), ops.cast(band, x.dtype))
        return x * ops.power(self._layer.bias + self._layer.alpha * sums, -self._layer.beta)


class BatchNormalization(keras.layers.BatchNormalization):
    """Keras's batch norm, but with the unbiased variance in the running variance."""

    def call(self, x: Any, training: bool | None = None) -> Any:
        """Normalise images ``[batch, height, width, channels]``."""
        average = ops.convert_to_tensor(self.moving_mean)
        variance = ops.convert_to_tensor(self.moving_variance)
        if training:
            count = ops.cast(math.prod(ops.shape(x)[:-1]), x.dtype)
            average = ops.sum(x, axis=(0, 1, 2)) / count
            variance = ops.sum(ops.square(x - average), axis=(0, 1, 2)) / count
            for running, now in (
                (self.moving_mean, average),
                (self.moving_variance, variance * (count / (count - 1))),
            ):
                running.assign(running + (1 - self.momentum) * (now - running))
        return ops.batch_normalization(
            x, average, variance, -1, self.beta, self.gamma, self.epsilon
        )


class LayerNormalization(keras.layers.LayerNormalization):
    """Keras's, which computes float64 in float32 on JAX."""

    def call(self, x: Any) -> Any:
        """Normalise the last axis."""
        if self.compute_dtype != "float64":
            return super().call(x)
        x = x - mean(x, (-1,))
        x = self.gamma * (x / ops.sqrt(mean(ops.square(x), (-1,)) + self.epsilon))
        return x if self.beta is None else x + self.beta


class GlobalAveragePooling2D(keras.layers.GlobalAveragePooling2D):
    """Keras's, which computes float64 in float32 on JAX."""

    def call(self, x: Any) -> Any:
        """Compute the mean of each channel."""
        return mean(x, (1, 2))[:, 0, 0]


class PositionEmbedding(keras.layers.Layer):
    """Adds a trained row for each position."""

    def __init__(self, layer: spec.PositionEmbedding, name: str) -> None:
        super().__init__(name=name)
        self._length = layer.length

    def build(self, shape: Any) -> None:
        """Allocate the table."""
        self.embeddings = self.add_weight(shape=(self._length, shape[-1]), name="embeddings")

    def call(self, x: Any) -> Any:
        """Add rows to sequences ``[batch, length, width]``."""
        return x + self.embeddings[: x.shape[1]]


class CausalAttention(keras.layers.Layer):
    """Causal self-attention with a fused projection of queries, keys and values.

    Keras's layer has separate ones.

    Keras's attention function has no dropout, and computes float64 in float32 on JAX.
    """

    def __init__(self, layer: spec.Attention, name: str) -> None:
        super().__init__(name=name)
        self._heads = layer.heads
        self._dropout = keras.layers.Dropout(layer.dropout) if layer.dropout else None

    def build(self, shape: Any) -> None:
        """Allocate the weights of both projections."""
        width = shape[-1]
        self.qkv = self.add_weight(shape=(width, 3 * width), name="qkv")
        self.out = self.add_weight(shape=(width, width), name="out")

    def call(self, x: Any, training: bool | None = None) -> Any:
        """Attend in sequences ``[batch, length, width]``."""
        _, length, width = x.shape
        joined = ops.reshape(
            ops.matmul(x, self.qkv), (-1, length, 3, self._heads, width // self._heads)
        )
        q, k, v = (joined[:, :, index] for index in range(3))
        scale = np.float64((width // self._heads) ** -0.5)
        if self._dropout is None and self.compute_dtype != "float64":
            mixed = ops.dot_product_attention(q, k, v, scale=scale, is_causal=True)
        else:
            later = np.triu(np.ones((length, length), bool), 1)
            scores = ops.where(
                later, -math.inf, ops.einsum("btnh,bsnh->bnts", q, k) * ops.cast(scale, x.dtype)
            )
            left = ops.softmax(scores)
            if self._dropout is not None:
                left = self._dropout(left, training=training)
            mixed = ops.einsum("bnts,bsnh->btnh", left, v)
        return ops.matmul(ops.reshape(mixed, (-1, length, width)), self.out)


class TiedHead(keras.layers.Layer):
    """Multiplies by the transposed table of an embedding."""

    def __init__(self, embedding: Any, name: str) -> None:
        super().__init__(name=name)
        self._embedding = embedding

    def call(self, x: Any) -> Any:
        """Compute logits ``[batch, length, vocabulary]``."""
        return ops.matmul(x, ops.transpose(self._embedding.embeddings))


class Residual(keras.layers.Layer):
    """``body(x) + shortcut(x)``, of layers that are already built."""

    def __init__(self, body: list[Any], shortcut: list[Any], name: str) -> None:
        super().__init__(name=name)
        self.body = body
        self.shortcut = shortcut

    def call(self, x: Any, training: bool | None = None) -> Any:
        """Add both branches."""
        y = x
        for layer in self.body:
            y = layer(y, training=training)
        for layer in self.shortcut:
            x = layer(x, training=training)
        return y + x


class _Padded:
    """A layer on windows of images that are padded on all sides."""

    def __init__(self, *arguments: Any, rows: int, value: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._rows = rows
        self._value = value

    def call(self, x: Any) -> Any:
        sides = (self._rows, self._rows)
        return super().call(ops.pad(x, ((0, 0), sides, sides, (0, 0)), constant_values=self._value))  # type: ignore[misc]

    def compute_output_shape(self, input_shape: Any) -> Any:
        batch, height, width, channels = input_shape
        padded = batch, height + 2 * self._rows, width + 2 * self._rows, channels
        return super().compute_output_shape(padded)  # type: ignore[misc]


class PaddedConv2D(_Padded, keras.layers.Conv2D):
    """A convolution of padded images."""


class PaddedMaxPooling2D(_Padded, keras.layers.MaxPooling2D):
    """The maximum over windows of padded images."""


def _layer(plan: LayerPlan, made: dict[str, Any]) -> keras.Layer:
    """Return the layer of a plan; ``made`` has those before it, by name."""
    made[plan.name] = _made(plan, made)
    return made[plan.name]


def _made(plan: LayerPlan, made: dict[str, Any]) -> keras.Layer:  # noqa: C901  (one case a layer)
    layers = keras.layers
    name = plan.name
    images: dict[str, Any] = {"name": name, "data_format": "channels_last"}
    layer = plan.layer
    match layer:
        case spec.Dense():
            biased = layer.bias != "none"
            return layers.Dense(
                layer.units, use_bias=biased, kernel_regularizer=_l2(layer.l2), name=name
            )
        case spec.Conv2D():
            images |= {"use_bias": layer.bias != "none", "kernel_regularizer": _l2(layer.l2)}
            padding = _padding(plan, layer)
            if isinstance(padding, int):
                return PaddedConv2D(
                    layer.filters, layer.size, layer.stride, rows=padding, value=0.0, **images
                )
            return layers.Conv2D(layer.filters, layer.size, layer.stride, padding, **images)
        case spec.MaxPool():
            padding = _padding(plan, layer)
            if isinstance(padding, int):
                return PaddedMaxPooling2D(
                    layer.size, layer.stride, rows=padding, value=-math.inf, **images
                )
            return layers.MaxPooling2D(layer.size, layer.stride, padding, **images)
        case spec.AveragePool():
            return layers.AveragePooling2D(layer.size, layer.stride, **images)
        case spec.GlobalAveragePool():
            return GlobalAveragePooling2D(**images)
        case spec.BatchNorm():
            return BatchNormalization(momentum=1 - layer.momentum, epsilon=layer.epsilon, name=name)
        case spec.LayerNorm():
            return LayerNormalization(epsilon=layer.epsilon, center=layer.shift, name=name)
        case spec.TokenEmbedding():
            return layers.Embedding(layer.vocabulary, layer.width, name=name)
        case spec.PositionEmbedding():
            return PositionEmbedding(layer, name)
        case spec.Attention():
            return CausalAttention(layer, name)
        case spec.TiedHead():
            return TiedHead(made[plan.table.rpartition(".")[0]], name)
        case spec.Residual():
            return Residual(_branch(plan.body, made), _branch(plan.shortcut, made), name)
        case spec.Repeat():
            raise AssertionError("its layers are laid out one by one")
        case spec.GELU():
            return layers.Activation(_gelu, name=name)
        case spec.Scale():
            return layers.Rescaling(np.float64(layer.factor), name=name)
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


def _branch(plans: Sequence[LayerPlan], made: dict[str, Any]) -> list[Any]:
    layers = [_layer(plan, made) for plan in plans]
    for plan, layer in zip(plans, layers, strict=True):
        layer.build((None, *plan.input_shape))
    return layers


def _every(layers: Sequence[Any]) -> Iterator[Any]:
    for layer in layers:
        if isinstance(layer, Residual):
            yield from _every([*layer.body, *layer.shortcut])
        yield layer


def _padding(plan: LayerPlan, layer: spec.Conv2D | spec.MaxPool) -> spec.Padding:
    """Return the padding, as a word if there is one for it."""
    for word in ("valid", "same"):
        sides = (
            spec.padding_of(layer.size, layer.stride, side, word) for side in plan.input_shape[:2]
        )
        if layer.padding == word or all(each == (layer.padding, layer.padding) for each in sides):
            return word
    return layer.padding


def _gelu(x: Any) -> Any:
    if keras.config.backend() == "tensorflow":  # its own GELU rounds √2 to float32
        return 0.5 * x * (1 + ops.erf(x * 0.5**0.5))
    return keras.activations.gelu(x, approximate=False)


def _l2(factor: float) -> L2 | None:
    return L2(factor) if factor else None
