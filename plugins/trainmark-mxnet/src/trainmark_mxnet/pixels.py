"""From stored bytes to network input with MXNet's operators, with separate distortions of each
image."""

from __future__ import annotations

import mxnet as mx
import numpy as np
from numpy.typing import DTypeLike, NDArray

from trainmark.workload.pixels import Input, prepare


def stored(
    spec: Input, images: NDArray[np.uint8], dtype: DTypeLike, context: mx.Context
) -> mx.nd.NDArray:
    """Return a training set for storage: network input, or bytes if every use distorts them."""
    if spec.distortions is not None:
        return mx.nd.array(images, ctx=context, dtype=np.uint8)
    return prepared(spec, images, dtype, context)


def prepared(
    spec: Input, images: NDArray[np.uint8], dtype: DTypeLike, context: mx.Context
) -> mx.nd.NDArray:
    """Convert bytes ``[batch, height, width, channels]`` to ``[batch, channels, height, width]``,
    deterministically."""
    values = np.ascontiguousarray(prepare(spec, images, dtype).transpose(0, 3, 1, 2))
    return mx.nd.array(values, ctx=context, dtype=dtype)


def distort(spec: Input, images: mx.nd.NDArray, dtype: DTypeLike) -> mx.nd.NDArray:
    """Convert and distort bytes ``[batch, height, width, channels]`` to ``[batch, channels, height,
    width]``.

    The steps are those of :func:`trainmark.workload.pixels.distort`, with MXNet's random numbers on
    the device.
    """
    assert spec.distortions is not None
    count, stored_height, stored_width, channels = images.shape
    height, width, _ = spec.network_shape
    context = images.context

    def whole_numbers(stop: int) -> mx.nd.NDArray:
        return mx.nd.arange(stop, ctx=context, dtype="int32")

    def draws(low: float, high: float) -> mx.nd.NDArray:
        return mx.nd.random.uniform(
            low, high, (count, 1, 1, 1), ctx=context, dtype=np.dtype(dtype).name
        )

    def corners(room: int) -> mx.nd.NDArray:
        return mx.nd.random.randint(0, room + 1, (count, 1), ctx=context, dtype="int32")

    rows = corners(stored_height - height) + whole_numbers(height).reshape((1, -1))
    columns = corners(stored_width - width) + whole_numbers(width).reshape((1, -1))
    if spec.distortions.flip:
        mirrored = mx.nd.random.uniform(shape=(count,), ctx=context) < 0.5
        columns = mx.nd.where(mirrored, columns.flip(axis=1), columns)
    places = rows.expand_dims(2) * stored_width + columns.expand_dims(1)
    places = places + (whole_numbers(count) * (stored_height * stored_width)).reshape((-1, 1, 1))
    x = mx.nd.take(images.reshape((-1, channels)), places).astype(dtype)
    x = x + draws(-spec.distortions.brightness, spec.distortions.brightness)
    mean = x.mean(axis=(1, 2), keepdims=True)
    return _scaled(spec, (x - mean) * draws(*spec.distortions.contrast) + mean).transpose(
        (0, 3, 1, 2)
    )


def _scaled(spec: Input, x: mx.nd.NDArray) -> mx.nd.NDArray:
    """Divide and standardise."""
    if spec.divide_by != 1:
        x = x / spec.divide_by
    if spec.standardize is not None:
        x = (x - spec.standardize.mean) / spec.standardize.sd
    if spec.standardize_each:
        x = x - x.mean(axis=(1, 2, 3), keepdims=True)
        sd = mx.nd.sqrt(mx.nd.square(x).mean(axis=(1, 2, 3), keepdims=True))
        x = x / mx.nd.maximum(sd, x[0].size ** -0.5)
    return x
