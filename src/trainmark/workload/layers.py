"""The layers of workloads: their arithmetic, shapes, weights and cost.

Images are NHWC, ``[batch, height, width, channels]``, sequences ``[batch, length, width]``; kernels
are ``[in, out]`` and ``[height, width, in, out]``. That is trainmark's canonical layout of weights;
a backend with another layout converts on input and output. To add a layer, define it here and build
it in each backend's ``network.py`` or ``layers.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

from trainmark.workload.decode import Bounded, Count, Misfit, NotNegative, Positive, Share, require
from trainmark.workload.initializers import Constant, GlorotUniform, Initializer, Normal

Padding = Literal["valid", "same"] | int
"""An integer is the number of rows and columns to add on each side."""
Shape = tuple[int, ...]
"""Excludes the batch."""
_MOST_SIDE = 4_096


class Weight(NamedTuple):
    """An array of a layer.

    Args:
        initial: how it is drawn.
        fans: number of inputs and of outputs of one unit, for the initialiser.
        trained: whether the optimiser changes it; the running averages of a batch norm are not
            trained.
    """

    shape: Shape
    initial: Initializer
    fans: tuple[int, int] = (1, 1)
    trained: bool = True


class Applied(NamedTuple):
    """A layer on inputs of one shape.

    Args:
        output: shape of its output.
        weights: its arrays, by name.
        macs: multiply-adds of its products in a forward pass, per example.
    """

    output: Shape
    weights: dict[str, Weight] = {}  # noqa: RUF012  (never changed)
    macs: int = 0


class Simple(Protocol):
    """A layer that contains no others."""

    @property
    def kind(self) -> str:
        """Its name in a TOML file."""

    def apply(self, shape: Shape) -> Applied:
        """Return output shape, weights and cost for inputs of ``shape``.

        Raises Misfit if they don't fit.
        """


@dataclass(frozen=True)
class Dense(Bounded):
    """``y = x @ kernel + bias`` along the last axis, of vectors or sequences.

    ``l2`` adds ``l2/2 · ‖kernel‖²`` to the loss (the kernel only).
    """

    units: Count
    kernel: Initializer = field(default_factory=GlorotUniform)
    bias: Initializer | Literal["none"] = field(default_factory=Constant)
    l2: NotNegative = 0.0
    kind: Literal["dense"] = "dense"

    def apply(self, shape: Shape) -> Applied:
        """Replace the last axis."""
        if len(shape) == 3:
            raise Misfit(
                (), f"a 'flatten' layer before {self.kind!r}", f"images of {written(shape)}"
            )
        *rows, inputs = shape
        weights = _kernel_and_bias(self, (inputs, self.units), inputs, self.units)
        return Applied((*rows, self.units), weights, math.prod(shape) * self.units)


@dataclass(frozen=True)
class Conv2D(Bounded):
    """Two-dimensional convolution (cross-correlation) with square kernels."""

    filters: Count
    size: Count
    padding: Padding = "valid"
    stride: Count = 1
    kernel: Initializer = field(default_factory=GlorotUniform)
    bias: Initializer | Literal["none"] = field(default_factory=Constant)
    l2: NotNegative = 0.0
    kind: Literal["conv2d"] = "conv2d"

    def apply(self, shape: Shape) -> Applied:
        """Return smaller images with a channel for each filter."""
        height, width, channels = _image(self.kind, shape)
        rows, columns = (
            _windows(self.size, self.stride, side, self.padding) for side in (height, width)
        )
        window = self.size**2
        kernel = (self.size, self.size, channels, self.filters)
        weights = _kernel_and_bias(self, kernel, window * channels, window * self.filters)
        return Applied((rows, columns, self.filters), weights, rows * columns * math.prod(kernel))


@dataclass(frozen=True)
class MaxPool(Bounded):
    """Maximum over square windows; padding is ignored."""

    size: Count
    stride: Count
    padding: Padding = "valid"
    kind: Literal["max-pool"] = "max-pool"

    def apply(self, shape: Shape) -> Applied:
        """Return smaller images."""
        return _pooled(self, shape)


@dataclass(frozen=True)
class AveragePool(Bounded):
    """Mean over square windows, without padding."""

    size: Count
    stride: Count
    kind: Literal["average-pool"] = "average-pool"

    def apply(self, shape: Shape) -> Applied:
        """Return smaller images."""
        return _pooled(self, shape)


@dataclass(frozen=True)
class GlobalAveragePool:
    """Mean of each channel: ``[batch, height, width, channels]`` to ``[batch, channels]``."""

    kind: Literal["global-average-pool"] = "global-average-pool"

    def apply(self, shape: Shape) -> Applied:
        """Return the channels."""
        return Applied(_image(self.kind, shape)[-1:])


@dataclass(frozen=True)
class LocalResponseNorm(Bounded):
    """``y = x / (bias + alpha · Σ x²)^beta``.

    The sum is over channels within ``radius``, fewer at the ends.

    Krizhevsky et al. 2012, section 3.3; as in TensorFlow, ``alpha`` is not divided by the window
    size.
    """

    radius: int
    alpha: float
    beta: float
    bias: Positive = 1.0
    kind: Literal["local-response-norm"] = "local-response-norm"

    def __post_init__(self) -> None:
        require(self.radius >= 0, "radius", "a whole number from 0", self.radius)
        super().__post_init__()

    def apply(self, shape: Shape) -> Applied:
        """Return the same shape."""
        return Applied(_image(self.kind, shape))


@dataclass(frozen=True)
class BatchNorm(Bounded):
    """``y = scale · (x - mean)/√(variance + epsilon) + shift`` for each channel of images.

    Training uses the mean and variance of the batch; after a step, ``running ← running + momentum ·
    (now - running)``, where the variance is the unbiased one (divided by n - 1). Evaluation uses
    the running averages. Ioffe and Szegedy 2015.
    """

    momentum: Share = 0.1
    epsilon: Positive = 1e-5
    kind: Literal["batch-norm"] = "batch-norm"

    def apply(self, shape: Shape) -> Applied:
        """Return the same shape."""
        channels = _image(self.kind, shape)[-1:]
        ones = Weight(channels, Constant(1.0))
        zeros = Weight(channels, Constant())
        running = {"mean": zeros._replace(trained=False), "variance": ones._replace(trained=False)}
        return Applied(shape, {"scale": ones, "shift": zeros, **running})


@dataclass(frozen=True)
class LayerNorm(Bounded):
    """``y = scale · (x - mean)/√(variance + epsilon) + shift`` along the last axis.

    ``shift = false`` omits it.
    """

    epsilon: Positive = 1e-5
    shift: bool = True
    kind: Literal["layer-norm"] = "layer-norm"

    def apply(self, shape: Shape) -> Applied:
        """Return the same shape."""
        weights = {"scale": Weight(shape[-1:], Constant(1.0))}
        return Applied(
            shape, weights | ({"shift": Weight(shape[-1:], Constant())} if self.shift else {})
        )


def _gpt_normal() -> Initializer:
    """Return the distribution of most weights of GPT-2."""
    return Normal(0.02)


@dataclass(frozen=True)
class TokenEmbedding(Bounded):
    """The row of a table for each token: ``[batch, length]`` to ``[batch, length, width]``."""

    vocabulary: Count
    width: Count
    table: Initializer = field(default_factory=_gpt_normal)
    kind: Literal["token-embedding"] = "token-embedding"

    def apply(self, shape: Shape) -> Applied:
        """Append an axis."""
        if len(shape) != 1:
            raise Misfit(
                (), f"tokens before {self.kind!r}", f"values of the shape {written(shape)}"
            )
        table = Weight((self.vocabulary, self.width), self.table, (self.vocabulary, self.width))
        return Applied((*shape, self.width), {"table": table})


@dataclass(frozen=True)
class PositionEmbedding(Bounded):
    """Adds a trained row for each position, up to sequences of ``length``."""

    length: Count
    table: Initializer = field(default_factory=_gpt_normal)
    kind: Literal["position-embedding"] = "position-embedding"

    def apply(self, shape: Shape) -> Applied:
        """Return the same shape."""
        length, width = _sequence(self.kind, shape)
        if length > self.length:
            raise Misfit(
                ("length",), f"at least {length}, the length of the sequences", str(self.length)
            )
        return Applied(
            shape, {"table": Weight((self.length, width), self.table, (self.length, width))}
        )


@dataclass(frozen=True)
class Attention(Bounded):
    """Causal self-attention without biases, followed by a projection.

    Each head computes ``softmax(q·kᵀ/√(width/heads))·v``.

    ``qkv`` is one ``[width, 3·width]`` kernel, in the order queries, keys, values; a head takes
    ``width/heads`` consecutive columns of each. ``dropout`` acts on the softmax's output in
    training. Vaswani et al. 2017.
    """

    heads: Count
    dropout: Share = 0.0
    qkv: Initializer = field(default_factory=_gpt_normal)
    out: Initializer = field(default_factory=_gpt_normal)
    kind: Literal["attention"] = "attention"

    def apply(self, shape: Shape) -> Applied:
        """Return the same shape; the cost includes the masked half of the positions."""
        length, width = _sequence(self.kind, shape)
        if width % self.heads:
            raise Misfit(("heads",), f"a divisor of the width, {width}", str(self.heads))
        weights = {
            "qkv": Weight((width, 3 * width), self.qkv, (width, 3 * width)),
            "out": Weight((width, width), self.out, (width, width)),
        }
        return Applied(shape, weights, length * 4 * width**2 + 2 * length**2 * width)


@dataclass(frozen=True)
class TiedHead:
    """``x @ tableᵀ`` with the table of the token embedding, which both layers share and train."""

    kind: Literal["tied-head"] = "tied-head"

    def apply(self, shape: Shape) -> Applied:
        """Check the shape; :func:`trainmark.workload.model.lay_out` knows the table."""
        return Applied(_sequence(self.kind, shape))


class Elementwise(Bounded):
    """A layer without weights that changes each value."""

    def apply(self, shape: Shape) -> Applied:
        """Return the same shape."""
        return Applied(shape)


@dataclass(frozen=True)
class ReLU(Elementwise):
    """``max(x, 0)``."""

    kind: Literal["relu"] = "relu"


@dataclass(frozen=True)
class GELU(Elementwise):
    """``x · Φ(x)``, exact, with the error function; Hendrycks and Gimpel 2016."""

    kind: Literal["gelu"] = "gelu"


@dataclass(frozen=True)
class Scale(Elementwise):
    """``factor · x``."""

    factor: Positive
    kind: Literal["scale"] = "scale"


@dataclass(frozen=True)
class Dropout(Elementwise):
    """In training, zero each value with probability ``rate``.

    The other values are scaled by ``1/(1 - rate)``.
    """

    rate: Share
    kind: Literal["dropout"] = "dropout"


@dataclass(frozen=True)
class ChannelDropout(Bounded):
    """Dropout of whole feature maps: one draw per example and channel."""

    rate: Share
    kind: Literal["channel-dropout"] = "channel-dropout"

    def apply(self, shape: Shape) -> Applied:
        """Return the same shape."""
        return Applied(_image(self.kind, shape))


@dataclass(frozen=True)
class Flatten:
    """``[batch, height, width, channels]`` to ``[batch, height · width · channels]``."""

    kind: Literal["flatten"] = "flatten"

    def apply(self, shape: Shape) -> Applied:
        """Return one axis."""
        return Applied((math.prod(shape),))


@dataclass(frozen=True)
class LogSoftmax:
    """``x - log Σ exp x`` over the classes."""

    kind: Literal["log-softmax"] = "log-softmax"

    def apply(self, shape: Shape) -> Applied:
        """Return the same shape."""
        if len(shape) != 1:
            raise Misfit(
                (), f"a 'flatten' layer before {self.kind!r}", f"images of {written(shape)}"
            )
        return Applied(shape)


@dataclass(frozen=True)
class Residual:
    """``body(x) + shortcut(x)``; without a shortcut ``body(x) + x``."""

    body: tuple[Layer, ...]
    shortcut: tuple[Layer, ...] = ()
    kind: Literal["residual"] = "residual"

    def __post_init__(self) -> None:
        require(bool(self.body), "body", "at least one layer", "none")


@dataclass(frozen=True)
class Repeat(Bounded):
    """The same layers several times, without sharing weights."""

    times: Count
    layers: tuple[Layer, ...]
    kind: Literal["repeat"] = "repeat"

    def __post_init__(self) -> None:
        require(bool(self.layers), "layers", "at least one layer", "none")
        super().__post_init__()


_OfImages = (
    Conv2D
    | MaxPool
    | AveragePool
    | GlobalAveragePool
    | LocalResponseNorm
    | BatchNorm
    | ChannelDropout
)
_OfSequences = TokenEmbedding | PositionEmbedding | Attention | TiedHead
_OfAnyShape = Dense | LayerNorm | ReLU | GELU | Scale | Dropout | Flatten | LogSoftmax
Layer = _OfImages | _OfSequences | _OfAnyShape | Residual | Repeat


def every(model: tuple[Layer, ...]) -> Iterator[Layer]:
    """Yield each layer, followed by those inside it; the layers of a repeat once."""
    for layer in model:
        yield layer
        if isinstance(layer, Residual):
            yield from every(layer.body + layer.shortcut)
        elif isinstance(layer, Repeat):
            yield from every(layer.layers)


def changed(model: tuple[Layer, ...], change: Callable[[Layer], Layer | None]) -> tuple[Layer, ...]:
    """Return the layers, also nested ones, after ``change``, which returns None to remove one."""
    found: list[Layer] = []
    for layer in model:
        new: Any = layer
        if isinstance(layer, Residual):
            body = changed(layer.body, change)
            new = None
            if body:
                new = replace(layer, body=body, shortcut=changed(layer.shortcut, change))
        elif isinstance(layer, Repeat):
            inner = changed(layer.layers, change)
            new = replace(layer, layers=inner) if inner else None
        new = new and change(new)
        found += [new] if new else []
    return tuple(found)


def padding_of(size: int, stride: int, width: int, padding: Padding) -> tuple[int, int]:
    """Return the rows to add before and after ``width`` rows.

    SAME is as in TensorFlow, with an odd row after.
    """
    if isinstance(padding, int):
        return padding, padding
    if padding == "valid":
        return 0, 0
    outputs = -(-width // stride)
    total = max((outputs - 1) * stride + size - width, 0)
    return total // 2, total - total // 2


def paddings(layer: Conv2D | MaxPool, shape: Shape) -> list[tuple[int, int]]:
    """Return the rows and columns to add before and after an image.

    Its shape is ``[height, width, ...]``.
    """
    return [padding_of(layer.size, layer.stride, side, layer.padding) for side in shape[:2]]


def written(shape: Shape) -> str:
    """Format a shape as ``28 × 28 × 1``."""
    return " × ".join(str(side) for side in shape)


def _kernel_and_bias(
    layer: Dense | Conv2D, shape: Shape, fan_in: int, fan_out: int
) -> dict[str, Weight]:
    weights = {"kernel": Weight(shape, layer.kernel, (fan_in, fan_out))}
    if layer.bias != "none":
        weights["bias"] = Weight(shape[-1:], layer.bias, (fan_in, fan_out))
    return weights


def _pooled(layer: MaxPool | AveragePool, shape: Shape) -> Applied:
    *sides, channels = _image(layer.kind, shape)
    padding = layer.padding if isinstance(layer, MaxPool) else "valid"
    return Applied(
        (*(_windows(layer.size, layer.stride, side, padding) for side in sides), channels)
    )


def _image(kind: str, shape: Shape) -> Shape:
    if len(shape) != 3:
        raise Misfit((), f"images before {kind!r}", f"{written(shape)} values per example")
    return shape


def _sequence(kind: str, shape: Shape) -> Shape:
    if len(shape) != 2:
        raise Misfit(
            (), f"sequences of vectors before {kind!r}", f"{written(shape)} values per example"
        )
    return shape


def _windows(size: int, stride: int, width: int, padding: Padding) -> int:
    if isinstance(padding, int) and not 0 <= padding < size:
        raise Misfit(
            ("padding",), "'valid', 'same', or a whole number below the size", str(padding)[:20]
        )
    before, after = padding_of(size, stride, width, padding)
    if size > _MOST_SIDE:
        # The size itself is not in the message, since it may have any number of digits.
        raise Misfit(("size",), f"a window of at most {_MOST_SIDE:,}", "a larger one")
    if size > width + before + after:
        raise Misfit(("size",), f"a window of at most {width}", str(size))
    return (width + before + after - size) // stride + 1
