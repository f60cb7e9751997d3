"""Distorted and augmented training images on the engine."""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import ops

from trainmark.workload.pixels import Input, kept, reflected


class Distort(keras.layers.Layer):
    """The same steps as :func:`trainmark.workload.pixels.distort`, with Keras's random numbers.

    Keras's random layers clip after brightening, and draw contrast and crop differently.
    """

    def __init__(self, spec: Input, seed: int) -> None:
        super().__init__()
        self._spec = spec
        self._seeds = keras.random.SeedGenerator(seed)

    def call(self, images: Any) -> Any:
        """Convert bytes to network input ``[batch, *network_shape]``.

        The bytes are ``[batch, height, width, channels]``.
        """
        spec = self._spec
        chosen = self._spec.distortions
        assert chosen is not None
        low, high = chosen.contrast
        x = self._cut_out(images, flip=chosen.flip)
        x = x + chosen.brightness * self._draw(x, -1, 1)
        middle = mean(x, (1, 2))
        x = (x - middle) * self._draw(x, low, high) + middle
        dtype = x.dtype

        def like(values: Any) -> Any:
            return ops.convert_to_tensor(values, dtype=dtype)

        x = spec.rescaled(x, like)
        if spec.standardize_each:
            x = x - mean(x, (1, 2, 3))
            sd = ops.sqrt(mean(ops.square(x), (1, 2, 3)))
            x = x / ops.maximum(sd, math.prod(spec.network_shape) ** -0.5)
        return x

    def _cut_out(self, images: Any, *, flip: bool) -> Any:
        """Crop a random window of each image, perhaps mirrored, with one gather of pixels."""
        (tall, broad, _) = self._spec.shape
        (height, width, _) = self._spec.network_shape
        count = ops.shape(images)[0]
        top = keras.random.randint((count, 1), 0, tall - height + 1, seed=self._seeds)
        left = keras.random.randint((count, 1), 0, broad - width + 1, seed=self._seeds)
        columns = ops.arange(width, dtype="int32") + left
        if flip:
            mirrored = keras.random.uniform((count, 1), seed=self._seeds) < 0.5
            columns = ops.where(mirrored, ops.flip(columns, axis=1), columns)
        rows = ops.arange(height, dtype="int32") + top
        return ops.cast(_at(images, rows, columns), self.compute_dtype)

    def _draw(self, x: Any, low: float, high: float) -> Any:
        """Draw one number in ``[low, high)`` per image."""
        return keras.random.uniform(
            (ops.shape(x)[0], 1, 1, 1), low, high, dtype=x.dtype, seed=self._seeds
        )


def augmented(spec: Input, images: Any, draws: Any) -> Any:
    """Do the same as :func:`trainmark.workload.pixels.augment`."""
    assert spec.augment is not None
    height, width, _ = spec.network_shape
    pad = spec.augment.pad
    cut = spec.augment.cutout
    top, left, flip, cut_top, cut_left = (draws[:, index, None] for index in range(5))
    rows = ops.arange(height, dtype="int32")
    columns = ops.arange(width, dtype="int32")
    chosen = ops.where(flip == 1, width - 1 - columns, columns) + left - pad
    x = _at(images, reflected(rows + top - pad, height), reflected(chosen, width))
    if not cut:
        return x
    return x * ops.cast(kept(rows, columns, cut_top, cut_left, cut), x.dtype)


def _at(images: Any, rows: Any, columns: Any) -> Any:
    """Gather pixels: rows ``[batch, height]`` and columns ``[batch, width]`` of each image."""
    count = ops.shape(images)[0]
    (tall, broad, channels) = images.shape[1:]
    height = rows.shape[1]
    width = columns.shape[1]
    pixels = ops.reshape(rows[:, :, None] * broad + columns[:, None, :], (count, height * width, 1))
    x = ops.take_along_axis(ops.reshape(images, (count, tall * broad, channels)), pixels, axis=1)
    return ops.reshape(x, (count, height, width, channels))


def mean(x: Any, axes: tuple[int, ...]) -> Any:
    """Compute the mean, with these axes kept.

    Keras's version computes float64 in float32 on JAX.
    """
    return ops.sum(x, axis=axes, keepdims=True) / math.prod(x.shape[axis] for axis in axes)
