"""From stored bytes to network input.

The order is fixed: crop, distort, divide, standardise. :func:`prepare` is the deterministic path
(evaluation, and training without distortions); :func:`distort` is the random path of the CIFAR-10
tutorial.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trainmark.workload.decode import Bounded, Misfit, Positive, require
from trainmark.workload.tokens import Tokens

_MOST_SIDE = 4_096


@dataclass(frozen=True)
class Standardize(Bounded):
    """``(x - mean) / sd`` with the same values for all pixels, or with those of each channel."""

    mean: float | tuple[float, ...]
    sd: Positive | tuple[Positive, ...]

    def of(self, x: Any, like: Callable[[list[float]], Any]) -> Any:
        """Standardise an array with channels last.

        ``like`` makes one of the same kind from a list.
        """
        mean, sd = (
            like(list(each)) if isinstance(each, tuple) else each for each in (self.mean, self.sd)
        )
        return (x - mean) / sd


@dataclass(frozen=True)
class Distortions:
    """Random crop (to ``Input.crop``), mirroring, brightness and contrast of each training image.

    Brightness adds a draw from ``U[-brightness, brightness)`` to all values; contrast multiplies
    each channel's distance to its mean by a draw from ``U[low, high)``. Both use the 0..255 scale.
    """

    flip: bool
    brightness: float
    contrast: tuple[float, float] = field(metadata={"places": "[low, high]"})


@dataclass(frozen=True)
class Augmentation(Bounded):
    """A random crop of each training image, mirroring, and a square of zeros.

    The crop comes after padding, and all come after standardisation.

    The draws come from the run's seed (:func:`draw_augmentation`), so every backend augments alike.

    Args:
        pad: rows and columns added on each side by reflection; the crop has the image's own size.
        flip: whether half of the images are mirrored.
        cutout: side of the square that is set to 0; 0 for none.
    """

    pad: int = 0
    flip: bool = False
    cutout: int = 0

    def __post_init__(self) -> None:
        for name in ("pad", "cutout"):
            require(getattr(self, name) >= 0, name, "a whole number from 0", getattr(self, name))


@dataclass(frozen=True)
class Input(Bounded):
    """How a dataset's bytes become the network's input.

    Args:
        shape: ``[height, width, channels]`` of the stored images.
        crop: side of the cropped square, centred in evaluation; None keeps the whole image.
        divide_by: divisor of the bytes.
        standardize: standardisation after the division.
        standardize_each: ``(x - mean)/max(sd, 1/√values)`` with the mean and standard deviation of
            each image.
        distortions: distortions in training, drawn by each framework.
        augment: distortions in training, drawn from the run's seed.
    """

    shape: tuple[int, int, int] = field(metadata={"places": "[height, width, channels]"})
    divide_by: Positive = 255.0
    crop: int | None = None
    standardize: Standardize | None = None
    standardize_each: bool = False
    distortions: Distortions | None = None
    augment: Augmentation | None = None

    length: ClassVar[None] = None

    def __post_init__(self) -> None:
        fits = all(0 < side <= _MOST_SIDE for side in self.shape)
        require(fits, "shape", f"three whole numbers above 0, {_MOST_SIDE:,} at most", self.shape)
        super().__post_init__()
        for name, values in vars(self.standardize).items() if self.standardize else ():
            if isinstance(values, tuple) and len(values) != self.shape[2]:
                expected = f"a number, or a list of {self.shape[2]}, one per channel"
                raise Misfit(("standardize", name), expected, f"a list of {len(values)}")
        if self.crop is not None:
            require(
                0 < self.crop <= min(self.shape[:2]),
                "crop",
                f"1 to {min(self.shape[:2])}",
                self.crop,
            )
        if self.augment is not None:
            least = min(self.network_shape[:2])
            both = self.distortions is None and not self.standardize_each
            require(both, "augment", "no 'distortions' or 'standardize_each' with it", self.augment)
            require(
                max(self.augment.pad, self.augment.cutout) < least,
                "augment",
                f"less than {least}",
                self.augment,
            )

    @property
    def network_shape(self) -> tuple[int, int, int]:
        """``(height, width, channels)`` of the network's input."""
        height, width, channels = self.shape
        return (self.crop, self.crop, channels) if self.crop else (height, width, channels)

    outputs_shape: ClassVar[tuple[int, ...]] = ()  # a label is a scalar

    def rescaled(self, x: Any, like: Callable[[list[float]], Any]) -> Any:
        """Return the values divided and standardised; an array of any framework, channels last.

        Args:
            like: makes an array of the same kind from a list.
        """
        if self.divide_by != 1:
            x = x / self.divide_by
        return x if self.standardize is None else self.standardize.of(x, like)


def prepare(spec: Input | Tokens, images: NDArray[Any], dtype: Any = np.float32) -> NDArray[Any]:
    """Convert bytes to network input ``[n, *network_shape]``, deterministically.

    The bytes are ``[n, height, width, channels]``.

    Tokens ``[n, length]`` become ``int64``.
    """
    if isinstance(spec, Tokens):
        return images.astype(np.int64)
    height, width, _ = spec.network_shape
    top = (spec.shape[0] - height) // 2
    left = (spec.shape[1] - width) // 2
    x = images[:, top : top + height, left : left + width].astype(dtype)
    _scale_in_place(spec, x)
    return x


def distort(
    spec: Input, images: NDArray[np.uint8], rng: np.random.Generator, dtype: Any = np.float32
) -> NDArray[Any]:
    """Convert bytes to network input, with separate distortions of each image.

    The bytes are ``[n, height, width, channels]``.
    """
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
    brightness = spec.distortions.brightness
    (low, high) = spec.distortions.contrast
    shift = (2 * rng.random(count) - 1) * brightness
    factor = low + (high - low) * rng.random(count)
    x += shift.astype(dtype).reshape(-1, 1, 1, 1)
    mean = x.mean(axis=(1, 2), keepdims=True)
    return scale(spec, (x - mean) * factor.astype(dtype).reshape(-1, 1, 1, 1) + mean)


def draw_augmentation(spec: Input, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw the augmentation of ``count`` images.

    Returns:
        Top and left of the crop in the padded image, whether it is mirrored, and top and left of
        the square, ``[count, 5]``.
    """
    assert spec.augment is not None
    height, width, _ = spec.network_shape
    crop = 2 * spec.augment.pad + 1
    cut = spec.augment.cutout
    ends = np.array([crop, crop, 2 if spec.augment.flip else 1, height - cut + 1, width - cut + 1])
    draws: NDArray[np.int64] = np.floor(rng.random((count, 5)) * ends).astype(np.int64)
    return draws


def augment(spec: Input, x: NDArray[Any], draws: NDArray[np.int64]) -> NDArray[Any]:
    """Augment prepared images with the draws of :func:`draw_augmentation`.

    The images are ``[n, height, width, channels]``.
    """
    assert spec.augment is not None
    (_, height, width, _) = x.shape
    pad = spec.augment.pad
    cut = spec.augment.cutout
    padded = np.pad(x, [(0, 0), (pad, pad), (pad, pad), (0, 0)], mode="reflect")
    top, left, flip, cut_top, cut_left = (each[:, None] for each in draws.T)
    rows = top + np.arange(height)
    columns = left + np.arange(width)
    columns = np.where(flip == 1, columns[:, ::-1], columns)
    x = padded[np.arange(len(x))[:, None, None], rows[:, :, None], columns[:, None, :]]
    x *= kept(np.arange(height), np.arange(width), cut_top, cut_left, cut)
    return x


def kept(rows: Any, columns: Any, top: Any, left: Any, side: int) -> Any:
    """Return which pixels are outside squares of this ``side``, in any library.

    The result is ``[batch, height, width, 1]``.
    """
    below, beside = (
        (each < start) | (each >= start + side) for each, start in ((rows, top), (columns, left))
    )
    return (below[:, :, None] | beside[:, None, :])[..., None]


def reflected(places: Any, side: int) -> Any:
    """Return the places in an image of those around it, in any library.

    They are mirrored at its first and last row.
    """
    return side - 1 - abs(side - 1 - abs(places))


def scale(spec: Input, x: NDArray[Any]) -> NDArray[Any]:
    """Divide and standardise images, a NumPy or JAX array."""
    dtype = x.dtype

    def like(values: list[float]) -> NDArray[Any]:
        return np.asarray(values, dtype)

    x = spec.rescaled(x, like)
    if spec.standardize_each:
        mean, sd = _moments_of_each(x)
        x = (x - mean) / sd
    return x


def _scale_in_place(spec: Input, x: NDArray[Any]) -> None:
    """Do what :func:`scale` does, in the array itself.

    A whole training set takes hundreds of megabytes. A second array for the result costs more than
    the arithmetic, because the kernel has to clear its memory.
    """
    if spec.divide_by != 1:
        x /= spec.divide_by
    if spec.standardize is not None:
        x -= np.asarray(spec.standardize.mean, x.dtype)
        x /= np.asarray(spec.standardize.sd, x.dtype)
    if spec.standardize_each:
        mean, sd = _moments_of_each(x)
        x -= mean
        x /= sd


def _moments_of_each(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return mean and standard deviation of each image; the latter is at least ``1/√values``."""
    mean = x.mean(axis=(1, 2, 3), keepdims=True)
    sd = x.std(axis=(1, 2, 3), keepdims=True).clip(x.dtype.type(x[0].size ** -0.5))
    return mean, sd
