"""The layers of workloads.

Images are NHWC, ``[batch, height, width, channels]``; kernels are ``[in, out]`` and ``[height, width, in, out]``.
That is trainmark's canonical layout of weights; a backend with another layout converts on input and output.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from trainmark.workload.decode import Bounded, Count, NotNegative, Positive, Share, require
from trainmark.workload.initializers import Constant, GlorotUniform, Initializer

Padding = Literal["valid", "same"]


@dataclass(frozen=True)
class Dense(Bounded):
    """``y = x @ kernel + bias``; ``[batch, in]`` to ``[batch, units]``.

    ``l2`` adds ``l2/2 · ‖kernel‖²`` to the loss (the kernel only).
    """

    units: Count
    kernel: Initializer = field(default_factory=GlorotUniform)
    bias: Initializer = field(default_factory=Constant)
    l2: NotNegative = 0.0
    kind: Literal["dense"] = "dense"


@dataclass(frozen=True)
class Conv2D(Bounded):
    """Two-dimensional convolution (cross-correlation) with square kernels, stride 1."""

    filters: Count
    size: Count
    padding: Padding = "valid"
    kernel: Initializer = field(default_factory=GlorotUniform)
    bias: Initializer = field(default_factory=Constant)
    l2: NotNegative = 0.0
    kind: Literal["conv2d"] = "conv2d"


@dataclass(frozen=True)
class MaxPool(Bounded):
    """Maximum over square windows; padding is ignored."""

    size: Count
    stride: Count
    padding: Padding = "valid"
    kind: Literal["max-pool"] = "max-pool"


@dataclass(frozen=True)
class LocalResponseNorm(Bounded):
    """``y = x / (bias + alpha · Σ x²)^beta``; the sum is over channels within ``radius``, fewer at the ends.

    Krizhevsky et al. 2012, section 3.3; as in TensorFlow, ``alpha`` is not divided by the window size.
    """

    radius: int
    alpha: float
    beta: float
    bias: Positive = 1.0
    kind: Literal["local-response-norm"] = "local-response-norm"

    def __post_init__(self) -> None:
        require(self.radius >= 0, "radius", "a whole number from 0", self.radius)
        super().__post_init__()


@dataclass(frozen=True)
class ReLU:
    """``max(x, 0)``."""

    kind: Literal["relu"] = "relu"


@dataclass(frozen=True)
class Dropout(Bounded):
    """In training, zero each value with probability ``rate``, and scale the others by ``1/(1 - rate)``."""

    rate: Share
    kind: Literal["dropout"] = "dropout"


@dataclass(frozen=True)
class ChannelDropout(Bounded):
    """Dropout of whole feature maps: one draw per example and channel."""

    rate: Share
    kind: Literal["channel-dropout"] = "channel-dropout"


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
    """Return the rows to add before and after ``width`` rows; SAME as in TensorFlow, with an odd row after."""
    if padding == "valid":
        return 0, 0
    outputs = -(-width // stride)
    total = max((outputs - 1) * stride + size - width, 0)
    return total // 2, total - total // 2
