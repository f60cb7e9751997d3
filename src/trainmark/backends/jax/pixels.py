"""From stored bytes to network input, on the device: the steps of :func:`trainmark.workload.pixels.distort`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from trainmark.workload.pixels import Input, scale


def distort(spec: Input, images: Array, key: Array, dtype: Any) -> Array:
    """Convert bytes ``[batch, height, width, channels]`` to network input, with separate distortions of each image."""
    assert spec.distortions is not None
    height, width, _ = spec.network_shape
    count = len(images)
    for_top, for_left, for_flip, for_shift, for_contrast = jax.random.split(key, 5)
    rows = jax.random.randint(for_top, (count, 1), 0, spec.shape[0] - height + 1) + jnp.arange(height)
    columns = jax.random.randint(for_left, (count, 1), 0, spec.shape[1] - width + 1) + jnp.arange(width)
    if spec.distortions.flip:
        columns = jnp.where(jax.random.bernoulli(for_flip, 0.5, (count, 1)), columns[:, ::-1], columns)
    each = jnp.arange(count)[:, None, None]
    x = images[each, rows[:, :, None], columns[:, None, :]].astype(dtype)
    brightness, (low, high) = spec.distortions.brightness, spec.distortions.contrast
    x = x + jax.random.uniform(for_shift, (count, 1, 1, 1), dtype, -brightness, brightness)
    mean = x.mean(axis=(1, 2), keepdims=True)
    return scale(spec, (x - mean) * jax.random.uniform(for_contrast, (count, 1, 1, 1), dtype, low, high) + mean)
