"""The matrix products that a training step comes down to, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from trainmark.workload.model import Model


class Product(NamedTuple):
    """A ``[rows, inner]`` by a ``[inner, columns]`` matrix.

    Args:
        turned: the left one lies in memory as its transpose, ``[inner, rows]``, which can be much slower.
    """

    rows: int
    inner: int
    columns: int
    turned: bool = False


def products(model: Model, batch: int) -> Iterator[Product]:
    """Those of one step: forward, by the kernel, and by the input where a layer before it learns.

    A convolution is the product of its windows, ``[batch · positions, window]``, with its kernel, ``[window,
    filters]``; whichever way a framework computes it, that many multiply-adds are asked for. A kernel's gradient is the
    product of the turned windows with the output's gradient.
    """
    for plan in model.weighted_layers:
        assert plan.kernel_shape is not None
        *window, filters = plan.kernel_shape
        rows, inner = batch * math.prod(plan.output_shape) // filters, math.prod(window)
        yield Product(rows, inner, filters)
        yield Product(inner, rows, filters, turned=True)
        if plan.input_gradient_macs:
            yield Product(rows, filters, inner)
