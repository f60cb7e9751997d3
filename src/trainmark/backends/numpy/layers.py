"""Forward and backward pass of every layer, written for readability.

A module keeps what its backward pass needs from the forward pass. Activations are ``[batch, ...]`` in canonical layout
(NHWC); ``backward`` takes the gradient of the loss with respect to the output and returns that for the input.
"""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from trainmark.backends.numpy.arithmetic import EXACT, Arithmetic
from trainmark.errors import assert_never
from trainmark.workload import layers as spec
from trainmark.workload.model import LayerPlan

Array = NDArray[Any]
Parameters = dict[str, Array]

NOT_COMPUTED: Array = np.empty(0)
"""Input gradient of the first layer with weights: nothing before it is trained."""


class Module(Protocol):
    """One layer, with what it keeps from the last forward pass."""

    def forward(self, x: Array, training: bool) -> Array:
        """Return the layer's output."""

    def backward(self, gradient: Array) -> Array:
        """Return the input gradient; parameter gradients are written to the dictionary that the module was given."""


@runtime_checkable
class Kinked(Protocol):
    """A layer whose gradient jumps where a unit changes sides."""

    def take_other_side(self, units: Array, x: Array) -> None:
        """Let ``units`` of the input ``x`` of the last forward pass change sides in the next backward pass."""


def build(
    plan: LayerPlan,
    weights: Parameters,
    gradients: Parameters,
    rng: np.random.Generator,
    arithmetic: Arithmetic = EXACT,
) -> Module:
    """Build the module of one layer; it reads ``weights`` and writes ``gradients`` under its parameter names."""
    match layer := plan.layer:
        case spec.Dense():
            return DenseModule(plan, weights, gradients, arithmetic)
        case spec.Conv2D():
            return ConvModule(plan, layer, weights, gradients, arithmetic)
        case spec.MaxPool():
            return MaxPoolModule(layer)
        case spec.LocalResponseNorm():
            return LocalResponseNormModule(layer, plan.input_shape[-1], arithmetic)
        case spec.Dropout() | spec.ChannelDropout():
            return DropoutModule(layer, rng)
        case spec.ReLU():
            return ReLUModule()
        case spec.Flatten():
            return FlattenModule()
        case spec.LogSoftmax():
            return LogSoftmaxModule(arithmetic)
        case _:
            assert_never(layer)


class DenseModule:
    """``x @ kernel + bias``."""

    def __init__(
        self, plan: LayerPlan, weights: Parameters, gradients: Parameters, arithmetic: Arithmetic = EXACT
    ) -> None:
        self._plan, self._weights, self._gradients, self._arithmetic = plan, weights, gradients, arithmetic

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        self._x = x
        y = self._arithmetic.product(x, self._kernel())
        y += self._weights[self._plan.bias_name]
        return self._arithmetic.rounded(y)

    def backward(self, gradient: Array) -> Array:
        product = self._arithmetic.product
        self._gradients[self._plan.kernel_name] = product(self._x.T, gradient).reshape(self._plan.kernel_shape)
        self._gradients[self._plan.bias_name] = self._arithmetic.column_sums(gradient)
        return product(gradient, self._kernel().T) if self._plan.input_gradient_macs else NOT_COMPUTED

    def _kernel(self) -> Array:
        """Return the kernel as a matrix ``[window, out]``."""
        kernel = self._weights[self._plan.kernel_name]
        return kernel.reshape(-1, kernel.shape[-1])


class ConvModule(DenseModule):
    """Convolution as one matrix product over all windows (im2col)."""

    def __init__(
        self,
        plan: LayerPlan,
        layer: spec.Conv2D,
        weights: Parameters,
        gradients: Parameters,
        arithmetic: Arithmetic = EXACT,
    ) -> None:
        super().__init__(plan, weights, gradients, arithmetic)
        self._size = layer.size
        self._padding = [spec.padding_of(layer.size, 1, width, layer.padding) for width in plan.input_shape[:2]]

    def forward(self, x: Array, training: bool) -> Array:
        x = np.pad(x, [(0, 0), *self._padding, (0, 0)])
        windows = sliding_window_view(x, (self._size, self._size), axis=(1, 2))  # [n, h, w, c, size, size]
        self._padded_shape, positions = x.shape, windows.shape[:3]
        rows = windows.transpose(0, 1, 2, 4, 5, 3).reshape(math.prod(positions), -1)
        return super().forward(rows, training).reshape(*positions, -1)

    def backward(self, gradient: Array) -> Array:
        size, (count, height, width, filters) = self._size, gradient.shape
        by_row = super().backward(gradient.reshape(-1, filters))
        if by_row is NOT_COMPUTED:
            return NOT_COMPUTED
        by_window = by_row.reshape(count, height, width, size, size, -1)
        by_input: Array = np.zeros(self._padded_shape, gradient.dtype)
        for row in range(size):
            for column in range(size):
                by_input[:, row : row + height, column : column + width] += by_window[:, :, :, row, column]
        return _cropped(by_input, self._padding)


class MaxPoolModule:
    """Maximum over windows; the gradient goes to the first maximum."""

    def __init__(self, layer: spec.MaxPool) -> None:
        self._layer = layer

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        flat = self.windows(x)
        self._winner = flat.argmax(axis=-1)
        return np.take_along_axis(flat, self._winner[..., None], axis=-1)[..., 0]

    def windows(self, x: Array) -> Array:
        """Return the values of each window, ``[batch, height, width, channels, window]``."""
        layer = self._layer
        self._padding = [spec.padding_of(layer.size, layer.stride, width, layer.padding) for width in x.shape[1:3]]
        x = np.pad(x, [(0, 0), *self._padding, (0, 0)], constant_values=-np.inf)
        self._padded_shape = x.shape
        windows = sliding_window_view(x, (layer.size, layer.size), axis=(1, 2))[:, :: layer.stride, :: layer.stride]
        return windows.reshape(*windows.shape[:4], -1)

    def take_other_side(self, units: Array, x: Array) -> None:
        """Give the gradients of ``units`` to the runner-up of their window in the input ``x``."""
        flat = self.windows(x)[units]
        flat[np.arange(len(flat)), flat.argmax(axis=-1)] = -np.inf
        self._winner[units] = flat.argmax(axis=-1)

    def backward(self, gradient: Array) -> Array:
        size, stride, (_, height, width, _) = self._layer.size, self._layer.stride, gradient.shape
        by_input: Array = np.zeros(self._padded_shape, gradient.dtype)
        for row in range(size):
            for column in range(size):
                target = by_input[:, row : row + stride * height : stride, column : column + stride * width : stride]
                target += gradient * (self._winner == row * size + column)
        return _cropped(by_input, self._padding)


class LocalResponseNormModule:
    """``y = x · s^-beta`` with ``s = bias + alpha · Σ x²`` over neighbouring channels."""

    def __init__(self, layer: spec.LocalResponseNorm, channels: int, arithmetic: Arithmetic = EXACT) -> None:
        self._layer, self._rounded = layer, arithmetic.rounded
        distance = np.abs(np.subtract.outer(np.arange(channels), np.arange(channels)))
        self._neighbours = distance <= layer.radius

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        self._x = x
        self._band = self._neighbours.astype(x.dtype)
        self._scale = self._layer.bias + self._layer.alpha * (x * x @ self._band)
        return self._rounded(x * self._scale**-self._layer.beta)

    def backward(self, gradient: Array) -> Array:
        alpha, beta, power = self._layer.alpha, self._layer.beta, self._scale**-self._layer.beta
        through_scale = (gradient * self._x * power / self._scale) @ self._band
        return self._rounded(gradient * power) - self._rounded(2 * alpha * beta * self._x * through_scale)


class DropoutModule:
    """Inverted dropout of single values, or of whole feature maps."""

    def __init__(self, layer: spec.Dropout | spec.ChannelDropout, rng: np.random.Generator) -> None:
        self._layer, self._rng = layer, rng

    def forward(self, x: Array, training: bool) -> Array:
        if not training:
            return x
        whole_maps = isinstance(self._layer, spec.ChannelDropout)
        shape = (len(x), *(1,) * (x.ndim - 2), x.shape[-1]) if whole_maps else x.shape
        kept = self._rng.random(shape, dtype=np.float32) >= self._layer.rate
        self._factor = kept * x.dtype.type(1 / (1 - self._layer.rate))
        return x * self._factor

    def backward(self, gradient: Array) -> Array:
        return gradient * self._factor


class ReLUModule:
    """``max(x, 0)``; the gradient at 0 is 0."""

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        self._positive = x > 0
        return x * self._positive

    def take_other_side(self, units: Array, x: Array) -> None:
        """Let the gradients of ``units`` through where ``x`` is not positive, and not where it is."""
        self._positive[units] = x[units] <= 0

    def backward(self, gradient: Array) -> Array:
        return gradient * self._positive


class FlattenModule:
    """Images to rows."""

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        self._shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, gradient: Array) -> Array:
        return gradient.reshape(self._shape)


class LogSoftmaxModule:
    """``x - log Σ exp x``, shifted by the maximum."""

    def __init__(self, arithmetic: Arithmetic = EXACT) -> None:
        self._rounded = arithmetic.rounded

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        shifted = x - x.max(axis=1, keepdims=True)
        y = self._rounded(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)), beside=1.0)
        self._y = y
        return y

    def backward(self, gradient: Array) -> Array:
        return self._rounded(gradient) - self._rounded(np.exp(self._y) * gradient.sum(axis=1, keepdims=True))


def _cropped(padded: Array, padding: list[tuple[int, int]]) -> Array:
    (top, bottom), (left, right) = padding
    return padded[:, top : padded.shape[1] - bottom, left : padded.shape[2] - right]
