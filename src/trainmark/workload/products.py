"""The matrix products that a training step comes down to, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainmark.workload.model import Model

Product = tuple[int, int, int]
"""``(rows, inner, columns)``: a ``[rows, inner]`` by a ``[inner, columns]`` matrix."""


def products(model: Model, batch: int) -> Iterator[Product]:
    """Those of one step: forward, by the kernel, and by the input where a layer before it learns.

    A convolution is the product of its windows, ``[batch · positions, window]``, with its kernel, ``[window,
    filters]``; whichever way a framework computes it, that many multiply-adds are asked for.
    """
    for plan in model.weighted_layers:
        assert plan.kernel_shape is not None
        *window, filters = plan.kernel_shape
        rows, inner = batch * math.prod(plan.output_shape) // filters, math.prod(window)
        yield rows, inner, filters
        yield inner, rows, filters
        if plan.input_gradient_macs:
            yield rows, filters, inner
