"""Forward and backward pass of every layer, written for readability.

A module keeps what its backward pass needs from the forward pass. Activations are ``[batch, ...]``
in canonical layout (NHWC); ``backward`` takes the gradient of the loss with respect to the output
and returns that for the input.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
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

_ERFC = np.frompyfunc(math.erfc, 1, 1)

NOT_COMPUTED: Array = np.empty(0)
"""Input gradient of the first layer with weights: nothing before it is trained."""


class Module(Protocol):
    """One layer, with what it keeps from the last forward pass."""

    def forward(self, x: Array, training: bool) -> Array:
        """Return the layer's output."""

    def backward(self, gradient: Array) -> Array:
        """Return the input gradient.

        Parameter gradients are written to the dictionary that the module was given.
        """


@runtime_checkable
class Kinked(Protocol):
    """A layer whose gradient jumps where a unit changes sides."""

    def take_other_side(self, units: Array, x: Array) -> None:
        """Let ``units`` of the input ``x`` change sides in the next backward pass.

        The input is that of the last forward pass.
        """


def build(
    plan: LayerPlan,
    weights: Parameters,
    gradients: Parameters,
    rng: np.random.Generator,
    arithmetic: Arithmetic = EXACT,
) -> Module:
    """Build the module of one layer.

    It reads ``weights`` and writes ``gradients`` under its parameter names.
    """
    made = _MODULES.get(type(plan.layer))
    if made is None:
        assert_never(plan.layer)  # type: ignore[arg-type]  # a kind that has no module yet
    return made(plan, weights, gradients, rng, arithmetic)


def outputs(
    plans: Sequence[LayerPlan], modules: Sequence[Module], x: Array, training: bool
) -> Iterator[tuple[LayerPlan, Array]]:
    """Yield each layer with its output, those inside a residual before it."""
    for plan, module in zip(plans, modules, strict=True):
        if isinstance(module, ResidualModule):
            y = other = x
            for each, y in outputs(plan.body, module.body, x, training):
                yield each, y
            for each, other in outputs(plan.shortcut, module.shortcut, x, training):
                yield each, other
            x = module.joined(y, other)
        else:
            x = module.forward(x, training)
        yield plan, x


class LayerModule:
    """What all modules keep.

    They read weights and add their gradients by their names within the layer.
    """

    def __init__(
        self,
        plan: LayerPlan,
        weights: Parameters,
        gradients: Parameters,
        rng: np.random.Generator,
        arithmetic: Arithmetic,
    ) -> None:
        self._plan = plan
        self._weights = weights
        self._gradients = gradients
        self._rng = rng
        self._arithmetic = arithmetic
        self._rounded = arithmetic.rounded
        self._layer: Any = plan.layer

    def _weight(self, name: str) -> Array:
        return self._weights[self._plan.key(name)]

    def _add(self, name: str, gradient: Array) -> None:
        key = self._plan.table or self._plan.key(name)
        self._gradients[key] = (
            self._gradients[key] + gradient if key in self._gradients else gradient
        )


class DenseModule(LayerModule):
    """``x @ kernel + bias``."""

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        self._x = x.reshape(-1, x.shape[-1])
        y = self._arithmetic.product(self._x, self._kernel())
        if "bias" in self._plan.weights:
            y += self._weight("bias")
        return self._arithmetic.rounded(y).reshape(*x.shape[:-1], -1)

    def backward(self, gradient: Array) -> Array:
        product = self._arithmetic.product
        rows = gradient.reshape(-1, gradient.shape[-1])
        self._add("kernel", product(self._x.T, rows).reshape(self._plan.weights["kernel"].shape))
        if "bias" in self._plan.weights:
            self._add("bias", self._arithmetic.column_sums(rows))
        if not self._plan.input_gradient_macs:
            return NOT_COMPUTED
        return product(rows, self._kernel().T).reshape(*gradient.shape[:-1], -1)

    def _kernel(self) -> Array:
        """Return the kernel as a matrix ``[window, out]``."""
        kernel = self._weight("kernel")
        return kernel.reshape(-1, kernel.shape[-1])


def _by_input(layer: Any, shape: Any, gradient: Array, share: Callable[[int, int], Array]) -> Array:
    """Return the gradient of an input of ``shape``.

    It is the sum of ``share`` over the positions in a window.
    """
    size = layer.size
    stride = layer.stride
    (height, width) = gradient.shape[1:3]
    found: Array = np.zeros(shape, gradient.dtype)
    for row, column in itertools.product(range(size), repeat=2):
        target = found[
            :, row : row + stride * height : stride, column : column + stride * width : stride
        ]
        target += share(row, column)
    return found


class ConvModule(DenseModule):
    """Convolution as one matrix product over all windows (im2col)."""

    def forward(self, x: Array, training: bool) -> Array:
        size = self._layer.size
        stride = self._layer.stride
        self._padding = spec.paddings(self._layer, x.shape[1:])
        x = np.pad(x, [(0, 0), *self._padding, (0, 0)])
        # [n, h, w, c, size, size]
        windows = sliding_window_view(x, (size, size), axis=(1, 2))[:, ::stride, ::stride]
        self._padded_shape = x.shape
        positions = windows.shape[:3]
        rows = windows.transpose(0, 1, 2, 4, 5, 3).reshape(math.prod(positions), -1)
        return super().forward(rows, training).reshape(*positions, -1)

    def backward(self, gradient: Array) -> Array:
        size = self._layer.size
        (count, height, width, filters) = gradient.shape
        by_row = super().backward(gradient.reshape(-1, filters))
        if by_row is NOT_COMPUTED:
            return NOT_COMPUTED
        by_window = by_row.reshape(count, height, width, size, size, -1)

        def share(row: int, column: int) -> Array:
            return by_window[:, :, :, row, column]

        return _cropped(_by_input(self._layer, self._padded_shape, gradient, share), self._padding)


class MaxPoolModule(LayerModule):
    """Maximum over windows; the gradient goes to the first maximum."""

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        flat = self.windows(x)
        self._winner = flat.argmax(axis=-1)
        return np.take_along_axis(flat, self._winner[..., None], axis=-1)[..., 0]

    def windows(self, x: Array) -> Array:
        """Return the values of each window, ``[batch, height, width, channels, window]``."""
        layer = self._layer
        self._padding = spec.paddings(layer, x.shape[1:])
        x = np.pad(x, [(0, 0), *self._padding, (0, 0)], constant_values=-np.inf)
        self._padded_shape = x.shape
        windows = sliding_window_view(x, (layer.size, layer.size), axis=(1, 2))
        windows = windows[:, :: layer.stride, :: layer.stride]
        return windows.reshape(*windows.shape[:4], -1)

    def take_other_side(self, units: Array, x: Array) -> None:
        """Give the gradients of ``units`` to the runner-up of their window in the input ``x``."""
        flat = self.windows(x)[units]
        flat[np.arange(len(flat)), flat.argmax(axis=-1)] = -np.inf
        self._winner[units] = flat.argmax(axis=-1)

    def backward(self, gradient: Array) -> Array:
        def share(row: int, column: int) -> Array:
            return gradient * (self._winner == row * self._layer.size + column)

        return _cropped(_by_input(self._layer, self._padded_shape, gradient, share), self._padding)


class AveragePoolModule(LayerModule):
    """Mean over windows."""

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        size = self._layer.size
        stride = self._layer.stride
        self._shape = x.shape
        windows = sliding_window_view(x, (size, size), axis=(1, 2))[:, ::stride, ::stride]
        return self._rounded(windows.mean(axis=(-2, -1)), terms=np.abs(windows).mean(axis=(-2, -1)))

    def backward(self, gradient: Array) -> Array:
        mean = self._rounded(gradient / gradient.dtype.type(self._layer.size**2))

        def share(_row: int, _column: int) -> Array:
            return mean

        return _by_input(self._layer, self._shape, gradient, share)


class GlobalAveragePoolModule(LayerModule):
    """Mean of each channel."""

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        self._shape = x.shape
        return self._rounded(x.mean(axis=(1, 2)), terms=np.abs(x).mean(axis=(1, 2)))

    def backward(self, gradient: Array) -> Array:
        share = gradient / gradient.dtype.type(self._shape[1] * self._shape[2])
        return np.broadcast_to(self._rounded(share)[:, None, None, :], self._shape)


class LayerNormModule(LayerModule):
    """``scale · x̂ + shift`` with ``x̂ = (x - mean)/√(variance + ε)`` of each row."""

    _over = -1  # the axis of mean and variance, with the other values in rows or columns

    def forward(self, x: Array, training: bool) -> Array:
        rows = x.reshape(-1, x.shape[-1])
        mean, variance = self._moments(rows, training)
        self._inverse = 1 / np.sqrt(variance + rows.dtype.type(self._layer.epsilon))
        normal = (rows - mean) * self._inverse
        self._normal = self._arithmetic.rounded(normal, terms=1 + np.abs(mean) * self._inverse)
        y = self._weight("scale") * self._normal
        if "shift" in self._plan.weights:
            y = y + self._weight("shift")
        return self._arithmetic.rounded(y).reshape(x.shape)

    def backward(self, gradient: Array) -> Array:
        rows = gradient.reshape(self._normal.shape)
        rounded = self._arithmetic.rounded
        self._add("scale", self._arithmetic.column_sums(rows * self._normal))
        if "shift" in self._plan.weights:
            self._add("shift", self._arithmetic.column_sums(rows))
        rows = rows * self._weight("scale")
        middle = rows.mean(axis=self._over, keepdims=True)
        along = (rows * self._normal).mean(axis=self._over, keepdims=True)
        by_input = rounded(rows) - rounded(middle) - rounded(self._normal * along)
        return (by_input * self._inverse).reshape(gradient.shape)

    def _moments(self, rows: Array, training: bool) -> tuple[Array, Array]:  # noqa: ARG002
        return rows.mean(axis=1, keepdims=True), rows.var(axis=1, keepdims=True)


class BatchNormModule(LayerNormModule):
    """The same with mean and variance of each channel over the batch.

    In evaluation, these are the running averages.
    """

    _over = 0

    def _moments(self, rows: Array, training: bool) -> tuple[Array, Array]:
        if not training:
            return self._weight("mean"), self._weight("variance")
        count = rows.dtype.type(len(rows))
        sums = self._arithmetic.column_sums
        mean = sums(rows) / count
        variance = sums((rows - mean) ** 2) / count
        for name, now in (("mean", mean), ("variance", variance * count / (count - 1))):
            running = self._weight(name)
            running += (self._layer.momentum * (now - running)).astype(running.dtype)
        return mean, variance


class TokenEmbeddingModule(LayerModule):
    """Rows of a table."""

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        self._tokens = x.astype(np.int64)
        return self._weight("table")[self._tokens]

    def backward(self, gradient: Array) -> Array:
        by_table = np.zeros_like(self._weight("table"))
        np.add.at(by_table, self._tokens, self._arithmetic.rounded(gradient))
        self._add("table", self._arithmetic.rounded(by_table))
        return NOT_COMPUTED


class PositionEmbeddingModule(LayerModule):
    """Adds a row for each position."""

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        return self._arithmetic.rounded(x + self._weight("table")[: x.shape[1]])

    def backward(self, gradient: Array) -> Array:
        by_table = np.zeros_like(self._weight("table"))
        by_table[: gradient.shape[1]] = self._arithmetic.column_sums(gradient)
        self._add("table", by_table)
        return gradient


class TiedHeadModule(LayerModule):
    """``x @ tableᵀ``."""

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        self._x = x.reshape(-1, x.shape[-1])
        y = self._arithmetic.product(self._x, self._weights[self._plan.table].T)
        return y.reshape(*x.shape[:-1], -1)

    def backward(self, gradient: Array) -> Array:
        product = self._arithmetic.product
        rows = gradient.reshape(-1, gradient.shape[-1])
        self._add("table", product(rows.T, self._x))
        return product(rows, self._weights[self._plan.table]).reshape(*gradient.shape[:-1], -1)


class AttentionModule(LayerModule):
    """Causal attention of several heads; arrays of heads are ``[batch, heads, length, ...]``."""

    def __init__(self, plan: LayerPlan, *others: Any) -> None:
        super().__init__(plan, *others)
        self._heads = self._layer.heads
        dropped = self._layer.dropout
        self._scale = (plan.input_shape[-1] // self._heads) ** -0.5
        self._dropout = (
            DropoutModule(replace(plan, layer=spec.Dropout(dropped)), *others) if dropped else None
        )

    def forward(self, x: Array, training: bool) -> Array:
        product = self._arithmetic.product
        (_, length, width) = x.shape
        self._x = x.reshape(-1, width)
        joined = product(self._x, self._weight("qkv")).reshape(*x.shape[:2], 3, self._heads, -1)
        self._q, self._k, self._v = joined.transpose(2, 0, 3, 1, 4)
        self.probabilities = self._softmax(product(self._q, self._k.swapaxes(-1, -2)), length)
        self._left = self.probabilities
        if self._dropout:
            self._left = self._dropout.forward(self.probabilities, training)
        self._mixed = product(self._left, self._v).swapaxes(1, 2).reshape(-1, width)
        return product(self._mixed, self._weight("out")).reshape(x.shape)

    def backward(self, gradient: Array) -> Array:
        product = self._arithmetic.product
        rounded = self._arithmetic.rounded
        (batch, length, width) = gradient.shape
        rows = gradient.reshape(-1, width)
        self._add("out", product(self._mixed.T, rows))
        by_mixed = (
            product(rows, self._weight("out").T)
            .reshape(batch, length, self._heads, -1)
            .swapaxes(1, 2)
        )
        by_left = product(by_mixed, self._v.swapaxes(-1, -2))
        if self._dropout:
            by_left = self._dropout.backward(by_left)
        weighted = by_left * self.probabilities
        by_scores = rounded(weighted) - rounded(
            self.probabilities * weighted.sum(axis=-1, keepdims=True)
        )
        by_scores *= by_scores.dtype.type(self._scale)
        parts = (
            product(by_scores, self._k),
            product(by_scores.swapaxes(-1, -2), self._q),
            product(self._left.swapaxes(-1, -2), by_mixed),
        )
        by_joined = np.stack(parts).transpose(1, 3, 0, 2, 4).reshape(-1, 3 * width)
        self._add("qkv", product(self._x.T, by_joined))
        return product(by_joined, self._weight("qkv").T).reshape(gradient.shape)

    def _softmax(self, scores: Array, length: int) -> Array:
        later = np.triu(np.ones((length, length), bool), 1)
        scores = np.where(later, -np.inf, scores * scores.dtype.type(self._scale))
        exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return self._arithmetic.rounded(exponentials / exponentials.sum(axis=-1, keepdims=True))


class ResidualModule(LayerModule):
    """``body(x) + shortcut(x)``."""

    def __init__(self, plan: LayerPlan, *others: Any) -> None:
        super().__init__(plan, *others)
        self.body, self.shortcut = (
            [build(each, *others) for each in plans] for plans in (plan.body, plan.shortcut)
        )

    def forward(self, x: Array, training: bool) -> Array:
        y = x
        for module in self.body:
            y = module.forward(y, training)
        for module in self.shortcut:
            x = module.forward(x, training)
        return self.joined(y, x)

    def joined(self, y: Array, x: Array) -> Array:
        """Add the outputs of both branches."""
        return self._rounded(y + x)

    def backward(self, gradient: Array) -> Array:
        by_body, by_shortcut = (_through(branch, gradient) for branch in (self.body, self.shortcut))
        if by_body is NOT_COMPUTED or by_shortcut is NOT_COMPUTED:
            return NOT_COMPUTED
        return self._rounded(by_body + by_shortcut)


def _through(branch: Sequence[Module], gradient: Array) -> Array:
    for module in reversed(branch):
        if gradient is not NOT_COMPUTED:
            gradient = module.backward(gradient)
    return gradient


class LocalResponseNormModule(LayerModule):
    """``y = x · s^-beta`` with ``s = bias + alpha · Σ x²`` over neighbouring channels."""

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        self._x = x
        channels = np.arange(x.shape[-1])
        self._band = (np.abs(np.subtract.outer(channels, channels)) <= self._layer.radius).astype(
            x.dtype
        )
        self._scale = self._layer.bias + self._layer.alpha * (x * x @ self._band)
        return self._rounded(x * self._scale**-self._layer.beta)

    def backward(self, gradient: Array) -> Array:
        alpha = self._layer.alpha
        beta = self._layer.beta
        power = self._scale**-beta
        through_scale = (gradient * self._x * power / self._scale) @ self._band
        return self._rounded(gradient * power) - self._rounded(
            2 * alpha * beta * self._x * through_scale
        )


class DropoutModule(LayerModule):
    """Inverted dropout of single values, or of whole feature maps."""

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


class ReLUModule(LayerModule):
    """``max(x, 0)``; the gradient at 0 is 0."""

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        self._positive = x > 0
        return x * self._positive

    def take_other_side(self, units: Array, x: Array) -> None:
        """Let gradients of ``units`` through where ``x`` is not positive, and not where it is."""
        self._positive[units] = x[units] <= 0

    def backward(self, gradient: Array) -> Array:
        return gradient * self._positive


class GELUModule(LayerModule):
    """``x · Φ(x)``."""

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        self._x = x
        self._below = _ERFC(x * -(0.5**0.5)).astype(x.dtype) / 2  # Φ(x)
        return self._rounded(x * self._below)

    def backward(self, gradient: Array) -> Array:
        density = np.exp(-0.5 * self._x**2) / math.sqrt(2 * math.pi)
        return self._rounded(
            gradient * (self._below + self._x * density), terms=np.abs(gradient * self._below)
        )


class ScaleModule(LayerModule):
    """``factor · x``."""

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        return x * x.dtype.type(self._layer.factor)

    def backward(self, gradient: Array) -> Array:
        return gradient * gradient.dtype.type(self._layer.factor)


class FlattenModule(LayerModule):
    """Images to rows."""

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        self._shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, gradient: Array) -> Array:
        return gradient.reshape(self._shape)


class LogSoftmaxModule(LayerModule):
    """``x - log Σ exp x``, shifted by the maximum."""

    def forward(self, x: Array, training: bool) -> Array:  # noqa: ARG002
        shifted = x - x.max(axis=1, keepdims=True)
        y = self._rounded(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)), terms=1.0)
        self._y = y
        return y

    def backward(self, gradient: Array) -> Array:
        return self._rounded(gradient) - self._rounded(
            np.exp(self._y) * gradient.sum(axis=1, keepdims=True)
        )


def _cropped(padded: Array, padding: list[tuple[int, int]]) -> Array:
    (top, bottom), (left, right) = padding
    return padded[:, top : padded.shape[1] - bottom, left : padded.shape[2] - right]


_MODULES: dict[type[spec.Layer], Callable[..., Module]] = {
    spec.Dense: DenseModule,
    spec.Conv2D: ConvModule,
    spec.MaxPool: MaxPoolModule,
    spec.AveragePool: AveragePoolModule,
    spec.GlobalAveragePool: GlobalAveragePoolModule,
    spec.BatchNorm: BatchNormModule,
    spec.LayerNorm: LayerNormModule,
    spec.TokenEmbedding: TokenEmbeddingModule,
    spec.PositionEmbedding: PositionEmbeddingModule,
    spec.Attention: AttentionModule,
    spec.TiedHead: TiedHeadModule,
    spec.GELU: GELUModule,
    spec.Scale: ScaleModule,
    spec.Residual: ResidualModule,
    spec.LocalResponseNorm: LocalResponseNormModule,
    spec.Dropout: DropoutModule,
    spec.ChannelDropout: DropoutModule,
    spec.ReLU: ReLUModule,
    spec.Flatten: FlattenModule,
    spec.LogSoftmax: LogSoftmaxModule,
}
"""All but the layers of a repeat, which are laid out one by one."""
