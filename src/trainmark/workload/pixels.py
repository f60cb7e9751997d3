"""From stored bytes to network input.

The order is fixed: crop, distort, divide, standardise. :func:`prepare` is the deterministic path (evaluation, and
training without distortions); :func:`distort` is the random path of the CIFAR-10 tutorial.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.workload.decode import Bounded, Positive, require

_MOST_SIDE = 4_096


@dataclass(frozen=True)
class Standardize(Bounded):
    """``(x - mean) / sd`` with the same mean and sd for all pixels."""

    mean: float
    sd: Positive


@dataclass(frozen=True)
class Distortions:
    """Random crop (to ``Input.crop``), mirroring, brightness and contrast of each training image.

    Brightness adds a draw from ``U[-brightness, brightness)`` to all values; contrast multiplies each channel's
    distance to its mean by a draw from ``U[low, high)``. Both use the 0..255 scale.
    """

    flip: bool
    brightness: float
    contrast: tuple[float, float] = field(metadata={"places": "[low, high]"})


@dataclass(frozen=True)
class Input(Bounded):
    """How a dataset's bytes become the network's input.

    Args:
        shape: ``[height, width, channels]`` of the stored images.
        crop: side of the cropped square, centred in evaluation; None keeps the whole image.
        divide_by: divisor of the bytes.
        standardize: standardisation after the division.
        standardize_each: ``(x - mean)/max(sd, 1/√values)`` with the mean and standard deviation of each image.
        distortions: distortions in training.
    """

    shape: tuple[int, int, int] = field(metadata={"places": "[height, width, channels]"})
    divide_by: Positive = 255.0
    crop: int | None = None
    standardize: Standardize | None = None
    standardize_each: bool = False
    distortions: Distortions | None = None

    def __post_init__(self) -> None:
        fits = all(0 < side <= _MOST_SIDE for side in self.shape)
        require(fits, "shape", f"three whole numbers above 0, {_MOST_SIDE:,} at most", self.shape)
        super().__post_init__()
        if self.crop is not None:
            require(0 < self.crop <= min(self.shape[:2]), "crop", f"1 to {min(self.shape[:2])}", self.crop)

    @property
    def network_shape(self) -> tuple[int, int, int]:
        """``(height, width, channels)`` of the network's input."""
        height, width, channels = self.shape
        return (self.crop, self.crop, channels) if self.crop else (height, width, channels)

    def rescaled(self, x: Any) -> Any:
        """Return the values divided and standardised; an array of any framework."""
        if self.divide_by != 1:
            x = x / self.divide_by
        if self.standardize is not None:
            x = (x - self.standardize.mean) / self.standardize.sd
        return x


def prepare(spec: Input, images: NDArray[np.uint8], dtype: Any = np.float32) -> NDArray[Any]:
    """Convert bytes ``[n, height, width, channels]`` to network input ``[n, *network_shape]``, deterministically."""
    height, width, _ = spec.network_shape
    top, left = (spec.shape[0] - height) // 2, (spec.shape[1] - width) // 2
    return scale(spec, images[:, top : top + height, left : left + width].astype(dtype))


def distort(spec: Input, images: NDArray[np.uint8], rng: np.random.Generator, dtype: Any = np.float32) -> NDArray[Any]:
    """Convert bytes ``[n, height, width, channels]`` to network input, with separate distortions of each image."""
    if spec.distortions is None:
        return prepare(spec, images, dtype)
    height, width, _ = spec.network_shape
    count = len(images)
    top = rng.integers(0, spec.shape[0] - height + 1, count)
    left = rng.integers(0, spec.shape[1] - width + 1, count)
    rows = top[:, None] + np.arange(height)
    columns = left[:, None] + np.arange(width)
    if spec.distortions.flip:
        columns = np.where(rng.random(count)[:, None] < 0.5, columns[:, ::-1], columns)
    x = images[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]].astype(dtype)
    brightness, (low, high) = spec.distortions.brightness, spec.distortions.contrast
    shift = (2 * rng.random(count) - 1) * brightness
    factor = low + (high - low) * rng.random(count)
    x += shift.astype(dtype).reshape(-1, 1, 1, 1)
    mean = x.mean(axis=(1, 2), keepdims=True)
    return scale(spec, (x - mean) * factor.astype(dtype).reshape(-1, 1, 1, 1) + mean)


def scale(spec: Input, x: NDArray[Any]) -> NDArray[Any]:
    """Divide and standardise images, a NumPy or JAX array."""
    x = spec.rescaled(x)
    if spec.standardize_each:
        mean = x.mean(axis=(1, 2, 3), keepdims=True)
        sd = x.std(axis=(1, 2, 3), keepdims=True).clip(x.dtype.type(x[0].size ** -0.5))
        x = (x - mean) / sd
    return x
