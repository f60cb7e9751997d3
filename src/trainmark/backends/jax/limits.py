"""Matrix products and copies of JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from trainmark.backends.base import Options
from trainmark.backends.jax.precision import product_dtype, set_arithmetic
from trainmark.backends.limits import Work
from trainmark.workload.products import Product


class JaxLimits:
    """One device in one precision."""

    def __init__(self, options: Options, device: Any) -> None:
        set_arithmetic(options.precision)
        self._device, self._dtype = device, product_dtype(options.precision)

    def products(self, asked: Sequence[Product]) -> Work:
        """One compiled program."""
        rng = np.random.default_rng(0)
        operands = [
            tuple(
                jax.device_put(rng.random(size, np.float32), self._device).astype(self._dtype)
                for size in ((k, m) if turned else (m, k), (k, n))
            )
            for m, k, n, turned in asked
        ]
        return _work(jax.jit(partial(_in_a_row, asked)), operands)

    def copy(self, size: int) -> Work:
        """Every value by -1: read once and written once, which XLA does not take out as it would a plain copy."""
        return _work(jax.jit(jnp.negative), jax.device_put(np.ones(size // 4, np.float32), self._device))


def _in_a_row(asked: Sequence[Product], operands: list[tuple[Array, Array]]) -> list[Array]:
    found: list[Array] = []
    for product, (left, right) in zip(asked, operands, strict=True):
        # Each waits for the one before, as in a step: else XLA may compute several at once.
        left, _ = lax.optimization_barrier((left, found[-1:]))
        found.append(jnp.matmul(left.T if product.turned else left, right))
    return found


def _work(function: Callable[..., Any], *arguments: Any) -> Work:
    last: list[Any] = []

    def queue() -> None:
        last[:] = [function(*arguments)]

    return Work(queue, lambda: jax.block_until_ready(last))
