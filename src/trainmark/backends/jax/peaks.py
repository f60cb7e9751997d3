"""Matrix products, convolutions and copies of JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from trainmark.backends.base import Options
from trainmark.backends.jax.network import convolve
from trainmark.backends.jax.precision import ARITHMETIC, set_arithmetic
from trainmark.backends.peaks import QueuedWork
from trainmark.workload.products import Convolution, Product


class JaxPeakKernels:
    """One device in one precision."""

    def __init__(self, options: Options, device: Any) -> None:
        set_arithmetic(options.precision)
        self._device = device
        self._dtype = ARITHMETIC[options.precision].factors

    def products(self, asked: Sequence[Product]) -> QueuedWork:
        """Return the products as one compiled program."""
        return _work(jax.jit(partial(_in_a_row, asked)), self._random(asked))

    def convolutions(self, asked: Sequence[Convolution]) -> QueuedWork:
        """Return the convolutions as one compiled program."""
        return _work(jax.jit(partial(_layers_in_a_row, asked)), self._random(asked))

    def _random(self, asked: Sequence[Product | Convolution]) -> list[tuple[Array, ...]]:
        """Draw the operands of each."""

        def draw(shape: tuple[int, ...]) -> Array:
            values = np.random.default_rng(0).random(shape, np.float32)
            return jax.device_put(values, self._device).astype(self._dtype)

        return [tuple(map(draw, each.operands)) for each in asked]

    def copy(self, size: int) -> QueuedWork:
        """Multiply every value by -1: one read and one write.

        XLA would remove a plain copy.
        """
        return _work(
            jax.jit(jnp.negative), jax.device_put(np.ones(size // 4, np.float32), self._device)
        )


def _in_a_row(asked: Sequence[Product], operands: list[tuple[Array, Array]]) -> list[Array]:
    found: list[Array] = []
    for product, (left, right) in zip(asked, operands, strict=True):
        # Each waits for the previous one, as in a step, or XLA may compute several at once.
        left, _ = lax.optimization_barrier((left, found[-1:]))
        found.append(jnp.matmul(left.mT if product.turned else left, right))
    return found


def _layers_in_a_row(
    asked: Sequence[Convolution], operands: list[tuple[Array, Array, Array]]
) -> list[Any]:
    found: list[Any] = []
    for each, (x, kernel, gradient) in zip(asked, operands, strict=True):
        x, _ = lax.optimization_barrier((x, found[-1:]))
        forward = partial(convolve, [(each.padding, each.padding)] * 2, stride=each.stride)
        if each.by_input:
            y, pull = jax.vjp(forward, x, kernel)
        else:
            y, pull = jax.vjp(partial(forward, x), kernel)
        found.append((y, pull(gradient)))
    return found


def _work(function: Callable[..., Any], *arguments: Any) -> QueuedWork:
    last: list[Any] = []

    def queue() -> None:
        last[:] = [function(*arguments)]

    def wait() -> None:
        jax.block_until_ready(last)

    return QueuedWork(queue, wait)
