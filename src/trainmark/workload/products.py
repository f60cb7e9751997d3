"""The matrix products and convolutions of a training step, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainmark.workload.layers import Conv2D, padding_of
from trainmark.workload.model import LayerPlan, Model


class Product(NamedTuple):
    """The product of a ``[rows, inner]`` and an ``[inner, columns]`` matrix.

    Args:
        turned: whether the left one is stored as its transpose, ``[inner, rows]``, which can be much slower.
    """

    rows: int
    inner: int
    columns: int
    turned: bool = False

    @property
    def operands(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Shapes of the two, as stored in memory."""
        left = (self.inner, self.rows) if self.turned else (self.rows, self.inner)
        return left, (self.inner, self.columns)


class Convolution(NamedTuple):
    """One layer's convolutions: forward, the kernel's gradient, and the input's if an earlier layer has weights.

    The output is ``[batch, height, width, filters]``, the kernel ``[size, size, channels, filters]``.

    Args:
        padding: zeros that the framework adds on each of the four sides; if a layer's padding is not symmetric, the
            image is as large as if it were already padded.
    """

    batch: int
    height: int
    width: int
    channels: int
    size: int
    filters: int
    by_input: bool
    padding: int = 0

    @property
    def input_shape(self) -> tuple[int, int, int, int]:
        """Shape of the input, channels last."""
        more = self.size - 1 - 2 * self.padding
        return self.batch, self.height + more, self.width + more, self.channels

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        """Shape of the output, channels last."""
        return self.batch, self.height, self.width, self.filters

    @property
    def kernel_shape(self) -> tuple[int, int, int, int]:
        """``[size, size, channels, filters]``."""
        return self.size, self.size, self.channels, self.filters

    @property
    def operands(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the input, the kernel and the output's gradient."""
        return self.input_shape, self.kernel_shape, self.output_shape

    def products(self) -> Iterator[Product]:
        """Yield the equivalent products: windows, ``[batch · positions, window]``, by kernel, ``[window, filters]``."""
        return _products(
            self.batch * self.height * self.width, self.size**2 * self.channels, self.filters, self.by_input
        )


def products(model: Model, batch: int) -> Iterator[Product]:
    """Yield the products of a step's dense layers: forward, and the gradients of :class:`Convolution`."""
    for plan in model.weighted_layers:
        if not isinstance(plan.layer, Conv2D):
            assert plan.kernel_shape is not None
            inner, columns = plan.kernel_shape
            yield from _products(batch, inner, columns, plan.input_gradient_macs > 0)


def convolutions(model: Model, batch: int) -> Iterator[Convolution]:
    """Yield the convolutions of one step."""
    return (_convolution(plan, plan.layer, batch) for plan in model.layers if isinstance(plan.layer, Conv2D))


def _convolution(plan: LayerPlan, layer: Conv2D, batch: int) -> Convolution:
    (height, width, filters), channels = plan.output_shape, plan.input_shape[2]
    sides = {side for size in plan.input_shape[:2] for side in padding_of(layer.size, 1, size, layer.padding)}
    padding = sides.pop() if len(sides) == 1 else 0
    return Convolution(batch, height, width, channels, layer.size, filters, plan.input_gradient_macs > 0, padding)


def _products(rows: int, inner: int, columns: int, by_input: bool) -> Iterator[Product]:
    yield Product(rows, inner, columns)
    yield Product(inner, rows, columns, turned=True)
    if by_input:
        yield Product(rows, columns, inner)
