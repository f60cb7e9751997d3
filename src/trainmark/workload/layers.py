"""The layers a workload is built of.

Images are NHWC, ``[batch, height, width, channels]``; kernels are ``[in, out]`` and ``[height, width, in, out]``.
That is the canonical layout of weights in trainmark; a backend that computes in another converts at its door.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from trainmark.workload.decode import require
from trainmark.workload.initializers import Constant, GlorotUniform, Initializer

Padding = Literal["valid", "same"]


@dataclass(frozen=True)
class Dense:
    """``y = x @ kernel + bias``; ``[batch, in]`` to ``[batch, units]``.

    ``l2`` adds ``l2/2 · ‖kernel‖²`` to the loss (the kernel only).
    """

    units: int
    kernel: Initializer = field(default_factory=GlorotUniform)
    bias: Initializer = field(default_factory=Constant)
    l2: float = 0.0
    kind: Literal["dense"] = "dense"

    def __post_init__(self) -> None:
        require(self.units > 0, "units", "a whole number above 0", self.units)
        require(self.l2 >= 0, "l2", "a number from 0", self.l2)


@dataclass(frozen=True)
class Conv2D:
    """Two-dimensional convolution (cross-correlation) with square kernels, stride 1."""

    filters: int
    size: int
    padding: Padding = "valid"
    kernel: Initializer = field(default_factory=GlorotUniform)
    bias: Initializer = field(default_factory=Constant)
    l2: float = 0.0
    kind: Literal["conv2d"] = "conv2d"

    def __post_init__(self) -> None:
        require(self.filters > 0, "filters", "a whole number above 0", self.filters)
        require(self.size > 0, "size", "a whole number above 0", self.size)
        require(self.l2 >= 0, "l2", "a number from 0", self.l2)


@dataclass(frozen=True)
class MaxPool:
    """Maximum over square windows; padding never wins."""

    size: int
    stride: int
    padding: Padding = "valid"
    kind: Literal["max-pool"] = "max-pool"

    def __post_init__(self) -> None:
        require(self.size > 0, "size", "a whole number above 0", self.size)
        require(self.stride > 0, "stride", "a whole number above 0", self.stride)


@dataclass(frozen=True)
class LocalResponseNorm:
    """``y = x / (bias + alpha · Σ x²)^beta``, the sum over channels within ``radius``, cut at the ends.

    Krizhevsky et al. 2012, section 3.3; as in TensorFlow, ``alpha`` is not divided by the window size.
    """

    radius: int
    alpha: float
    beta: float
    bias: float = 1.0
    kind: Literal["local-response-norm"] = "local-response-norm"

    def __post_init__(self) -> None:
        require(self.radius >= 0, "radius", "a whole number from 0", self.radius)
        require(self.bias > 0, "bias", "a number above 0", self.bias)


@dataclass(frozen=True)
class ReLU:
    """``max(x, 0)``."""

    kind: Literal["relu"] = "relu"


@dataclass(frozen=True)
class Dropout:
    """In training each value is zeroed with probability ``rate``, the rest are scaled by ``1/(1 - rate)``."""

    rate: float
    kind: Literal["dropout"] = "dropout"

    def __post_init__(self) -> None:
        require(0 <= self.rate < 1, "rate", "a number from 0 to below 1", self.rate)


@dataclass(frozen=True)
class ChannelDropout:
    """Dropout of whole feature maps: one draw per example and channel."""

    rate: float
    kind: Literal["channel-dropout"] = "channel-dropout"

    def __post_init__(self) -> None:
        require(0 <= self.rate < 1, "rate", "a number from 0 to below 1", self.rate)


@dataclass(frozen=True)
class Flatten:
    """``[batch, height, width, channels]`` to ``[batch, height · width · channels]``."""

    kind: Literal["flatten"] = "flatten"


@dataclass(frozen=True)
class LogSoftmax:
    """``x - log Σ exp x`` over the classes."""

    kind: Literal["log-softmax"] = "log-softmax"


Layer = Dense | Conv2D | MaxPool | LocalResponseNorm | ReLU | Dropout | ChannelDropout | Flatten | LogSoftmax


def padding_of(size: int, stride: int, width: int, padding: Padding) -> tuple[int, int]:
    """Rows to put before and after ``width`` rows; SAME as TensorFlow defines it, the odd row behind."""
    if padding == "valid":
        return 0, 0
    outputs = -(-width // stride)
    total = max((outputs - 1) * stride + size - width, 0)
    return total // 2, total - total // 2
