"""From stored bytes to network input, on the device.

It does what :mod:`trainmark.workload.pixels` does on the host.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from trainmark.workload.pixels import Input, kept, reflected, scale


def distort(spec: Input, images: Array, key: Array, dtype: Any) -> Array:
    """Convert bytes to network input, with separate distortions of each image.

    The bytes are ``[batch, height, width, channels]``.
    """
    assert spec.distortions is not None
    height, width, _ = spec.network_shape
    count = len(images)
    for_top, for_left, for_flip, for_shift, for_contrast = jax.random.split(key, 5)
    rows = jax.random.randint(for_top, (count, 1), 0, spec.shape[0] - height + 1) + jnp.arange(
        height
    )
    columns = jax.random.randint(for_left, (count, 1), 0, spec.shape[1] - width + 1) + jnp.arange(
        width
    )
    if spec.distortions.flip:
        columns = jnp.where(
            jax.random.bernoulli(for_flip, 0.5, (count, 1)), columns[:, ::-1], columns
        )
    each = jnp.arange(count)[:, None, None]
    x = images[each, rows[:, :, None], columns[:, None, :]].astype(dtype)
    brightness = spec.distortions.brightness
    (low, high) = spec.distortions.contrast
    x = x + jax.random.uniform(for_shift, (count, 1, 1, 1), dtype, -brightness, brightness)
    mean = x.mean(axis=(1, 2), keepdims=True)
    return scale(
        spec,
        (x - mean) * jax.random.uniform(for_contrast, (count, 1, 1, 1), dtype, low, high) + mean,
    )


def augment(spec: Input, x: Array, draws: Array) -> Array:
    """Augment prepared images with draws ``[batch, 5]``.

    It does what :func:`trainmark.workload.pixels.augment` does.
    """
    assert spec.augment is not None
    (count, height, width, _) = x.shape
    pad = spec.augment.pad
    cut = spec.augment.cutout
    top, left, flip, cut_top, cut_left = (each[:, None] for each in draws.T)
    rows = reflected(top + jnp.arange(height) - pad, height)
    columns = reflected(left + jnp.arange(width) - pad, width)
    columns = jnp.where(flip == 1, columns[:, ::-1], columns)
    each = jnp.arange(count)[:, None, None]
    x = x.at[each, rows[:, :, None], columns[:, None, :]].get(mode="promise_in_bounds")
    return jnp.where(kept(jnp.arange(height), jnp.arange(width), cut_top, cut_left, cut), x, 0)


def not_augmented(spec: Input) -> tuple[int, ...]:
    """Return the draws that leave an image as it is."""
    assert spec.augment is not None
    return (spec.augment.pad, spec.augment.pad, 0, *spec.network_shape[:2])
