"""Matrix products and copies of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from trainmark.backends.base import Options
from trainmark.backends.jax.precision import product_dtype, set_arithmetic
from trainmark.backends.limits import Work


class JaxLimits:
    """One device in one precision."""

    def __init__(self, options: Options, device: Any) -> None:
        set_arithmetic(options.precision)
        self._device, self._dtype = device, product_dtype(options.precision)

    def product(self, size: int) -> Work:
        """A compiled product."""
        rng = np.random.default_rng(0)
        left, right = (
            jax.device_put(rng.random((size, size), np.float32), self._device).astype(self._dtype) for _ in range(2)
        )
        return _work(jax.jit(jnp.matmul), left, right)

    def copy(self, size: int) -> Work:
        """Every value by -1: read once and written once, which XLA does not take out as it would a plain copy."""
        return _work(jax.jit(jnp.negative), jax.device_put(np.ones(size // 4, np.float32), self._device))


def _work(function: Callable[..., Any], *arguments: Any) -> Work:
    last: list[Any] = []

    def queue() -> None:
        last[:] = [function(*arguments)]

    return Work(queue, lambda: jax.block_until_ready(last))
