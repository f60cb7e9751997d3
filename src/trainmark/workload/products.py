"""The matrix products and convolutions of a training step, layer by layer."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

from trainmark.workload.layers import Attention, Conv2D, Dense, TiedHead, paddings
from trainmark.workload.model import LayerPlan, Model


class Product(NamedTuple):
    """The product of a ``[rows, inner]`` and an ``[inner, columns]`` matrix.

    Args:
        turned: whether the left one is stored as its transpose, ``[inner, rows]``, which can be
            much slower.
        number: number of such products in one batched product.
    """

    rows: int
    inner: int
    columns: int
    turned: bool = False
    number: int = 1

    @property
    def operands(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shapes of the two, as stored in memory; those of a batched product have one more axis."""
        together = (self.number,) if self.number > 1 else ()
        left = (self.inner, self.rows) if self.turned else (self.rows, self.inner)
        return (*together, *left), (*together, self.inner, self.columns)


class Convolution(NamedTuple):
    """One layer's convolutions: forward, and the gradients.

    The input has a gradient if an earlier layer has weights.

    The output is ``[batch, height, width, filters]``, the kernel ``[size, size, channels,
    filters]``.

    Args:
        padding: zeros that the framework adds on each of the four sides; if a layer's padding is
            not symmetric, the image is as large as if it were already padded.
        stride: distance between windows.
    """

    batch: int
    height: int
    width: int
    channels: int
    size: int
    filters: int
    by_input: bool
    padding: int = 0
    stride: int = 1

    @property
    def input_shape(self) -> tuple[int, int, int, int]:
        """Shape of the input, channels last."""
        height, width = (
            self.stride * (side - 1) + self.size - 2 * self.padding
            for side in (self.height, self.width)
        )
        return self.batch, height, width, self.channels

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
        """Yield the equivalent products of windows and kernel.

        Windows are ``[batch · positions, window]``, the kernel is ``[window, filters]``.
        """
        return _products(
            self.batch * self.height * self.width,
            self.size**2 * self.channels,
            self.filters,
            self.by_input,
        )


def products(model: Model, batch: int) -> Iterator[Product]:
    """Yield the products of a step, except convolutions.

    They are those of the forward pass, and the gradients of :class:`Convolution`.
    """
    for plan in model.every_layer:
        rows = batch * math.prod(plan.input_shape[:-1])
        inner = plan.input_shape[-1]
        match plan.layer:
            case Dense() | TiedHead():
                yield from _products(
                    rows, inner, plan.output_shape[-1], plan.input_gradient_macs > 0
                )
            case Attention(heads=heads):
                length = plan.input_shape[0]
                count = batch * heads
                yield from _products(rows, inner, 3 * inner, by_input=True)
                # The first product yields the scores, and the second one mixes the values.
                for one, other in ((inner // heads, length), (length, inner // heads)):
                    yield from (
                        each._replace(number=count)
                        for each in _products(length, one, other, by_input=True)
                    )
                yield from _products(rows, inner, inner, by_input=True)
            case _:
                pass


def convolutions(model: Model, batch: int) -> Iterator[Convolution]:
    """Yield the convolutions of one step."""
    return (
        _convolution(plan, plan.layer, batch)
        for plan in model.every_layer
        if isinstance(plan.layer, Conv2D)
    )


def _convolution(plan: LayerPlan, layer: Conv2D, batch: int) -> Convolution:
    (height, width, filters) = plan.output_shape
    channels = plan.input_shape[2]
    sides = set(itertools.chain(*paddings(layer, plan.input_shape)))
    padding = sides.pop() if len(sides) == 1 else 0
    by_input = plan.input_gradient_macs > 0
    return Convolution(
        batch, height, width, channels, layer.size, filters, by_input, padding, layer.stride
    )


def _products(rows: int, inner: int, columns: int, by_input: bool) -> Iterator[Product]:
    yield Product(rows, inner, columns)
    yield Product(inner, rows, columns, turned=True)
    if by_input:
        yield Product(rows, columns, inner)
