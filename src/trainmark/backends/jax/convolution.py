"""Two ways to convolve with stride 1: ``[batch, height, width, in]`` by ``[size, size, in, out]``."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

Padding = list[tuple[int, int]]
Convolve = Callable[[Array, Array, Padding], Array]
"""``(images, kernel, rows and columns to put before and after)`` to the convolution."""


def by_xla(x: Array, kernel: Array, padding: Padding) -> Array:
    """XLA's own convolution."""
    return lax.conv_general_dilated(x, kernel, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def by_products(x: Array, kernel: Array, padding: Padding) -> Array:
    """One matrix product for each row of the kernel, over the columns laid side by side.

    On a CPU, XLA's convolution runs on one thread inside a scan; products run on all.
    """
    size, _, channels, filters = kernel.shape
    x = jnp.pad(x, ((0, 0), *padding, (0, 0)))
    batch, height, width, _ = x.shape
    rows, columns = height - size + 1, width - size + 1
    beside = jnp.concatenate([x[:, :, first : first + columns] for first in range(size)], axis=-1)
    of_rows = (
        beside[:, row : row + rows].reshape(-1, size * channels) @ kernel[row].reshape(-1, filters)
        for row in range(size)
    )
    return sum(of_rows, jnp.zeros((), x.dtype)).reshape(batch, rows, columns, filters)
