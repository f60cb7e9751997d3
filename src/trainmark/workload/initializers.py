"""Initial weights, drawn by NumPy and identical for every backend.

Only ``Generator.random`` is used: its stream has not changed since NumPy 1.17, so the same seed
gives the same weights in every measured interpreter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trainmark.workload.decode import Bounded, Positive

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class GlorotUniform:
    """Uniform in ±sqrt(6 / (fan_in + fan_out)); Glorot and Bengio 2010, eq. 16."""

    kind: Literal["glorot-uniform"] = "glorot-uniform"

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int
    ) -> Float64:
        return _uniform(rng, shape, math.sqrt(6 / (fan_in + fan_out)))


@dataclass(frozen=True)
class Uniform(Bounded):
    """Uniform in ±half_width."""

    half_width: Positive
    kind: Literal["uniform"] = "uniform"

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int
    ) -> Float64:
        return _uniform(rng, shape, self.half_width)


@dataclass(frozen=True)
class FanInUniform:
    """Uniform in ±1/sqrt(fan_in), for weights and biases, as in early PyTorch."""

    kind: Literal["fan-in-uniform"] = "fan-in-uniform"

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int
    ) -> Float64:
        return _uniform(rng, shape, 1 / math.sqrt(fan_in))


@dataclass(frozen=True)
class TruncatedNormal(Bounded):
    """Normal with mean 0 and standard deviation ``sd`` before truncation.

    Draws beyond 2 ``sd`` are redrawn.
    """

    sd: Positive
    kind: Literal["truncated-normal"] = "truncated-normal"

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int
    ) -> Float64:
        values = _normal(rng, math.prod(shape))
        outside = np.flatnonzero(np.abs(values) > 2)
        while outside.size:
            values[outside] = _normal(rng, outside.size)
            outside = outside[np.abs(values[outside]) > 2]
        return self.sd * values.reshape(shape)


@dataclass(frozen=True)
class Constant:
    """The same value everywhere."""

    value: float = 0.0
    kind: Literal["constant"] = "constant"

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int
    ) -> Float64:
        return np.full(shape, self.value, dtype=np.float64)


@dataclass(frozen=True)
class Normal(Bounded):
    """Normal with mean 0 and standard deviation ``sd``."""

    sd: Positive
    kind: Literal["normal"] = "normal"

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int
    ) -> Float64:
        return self.sd * _normal(rng, math.prod(shape)).reshape(shape)


@dataclass(frozen=True)
class FanOutNormal:
    """Normal with standard deviation ``sqrt(2 / fan_out)``.

    See He et al. 2015, section 2.2, backward.
    """

    kind: Literal["fan-out-normal"] = "fan-out-normal"

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int
    ) -> Float64:
        return math.sqrt(2 / fan_out) * _normal(rng, math.prod(shape)).reshape(shape)


Initializer = (
    GlorotUniform | Uniform | FanInUniform | TruncatedNormal | Normal | FanOutNormal | Constant
)


def _uniform(rng: np.random.Generator, shape: tuple[int, ...], half_width: float) -> Float64:
    return (2 * rng.random(shape) - 1) * half_width


def _normal(rng: np.random.Generator, size: int) -> Float64:
    """Draw by Box-Muller.

    The stream of ``standard_normal`` may change between NumPy versions.
    """
    radius = np.sqrt(-2 * np.log1p(-rng.random(size)))
    normal: Float64 = radius * np.cos(2 * np.pi * rng.random(size))
    return normal
