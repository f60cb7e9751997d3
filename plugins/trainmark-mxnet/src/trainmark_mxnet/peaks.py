"""Matrix products, convolutions and copies of MXNet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import mxnet as mx

from trainmark.backends.base import Options
from trainmark.backends.peaks import QueuedWork
from trainmark.workload.products import Convolution, Product
from trainmark_mxnet.precision import DTYPES


class MxnetPeakKernels:
    """One device in one precision."""

    def __init__(self, options: Options) -> None:
        kind, _, index = options.device.partition(":")
        self._context = mx.gpu(int(index)) if kind == "cuda" else mx.cpu()
        self._dtype = DTYPES[options.precision]

    def products(self, asked: Sequence[Product]) -> QueuedWork:
        """Return products into preallocated matrices."""
        operands = [
            tuple(
                mx.nd.random.uniform(shape=size, ctx=self._context, dtype=self._dtype)
                for size in (*each.operands, (each.rows, each.columns))
            )
            for each in asked
        ]

        def queue() -> None:
            # Equal lengths by construction
            for product, (left, right, out) in zip(asked, operands):  # noqa: B905
                mx.nd.dot(left, right, transpose_a=product.turned, out=out)

        return QueuedWork(queue, mx.nd.waitall)

    def convolutions(self, asked: Sequence[Convolution]) -> QueuedWork:
        """Return forward and backward convolutions, channels first."""
        operands = []
        for each in asked:
            kernel = each.filters, each.size, each.size, each.channels
            x, gradient, kernel = (
                self._random(shape) for shape in (each.input_shape, each.output_shape, kernel)
            )
            for array in (kernel, x) if each.by_input else (kernel,):
                array.attach_grad()
            operands.append((each, x, gradient, kernel))

        def queue() -> None:
            for each, x, gradient, kernel in operands:
                with mx.autograd.record():
                    y = mx.nd.Convolution(
                        x,
                        kernel,
                        no_bias=True,
                        kernel=(each.size,) * 2,
                        pad=(each.padding,) * 2,
                        num_filter=each.filters,
                    )
                y.backward(gradient)

        return QueuedWork(queue, mx.nd.waitall)

    def _random(self, shape: tuple[int, int, int, int]) -> mx.nd.NDArray:
        """Draw an array of this channels-last shape, but with channels first."""
        batch, height, width, channels = shape
        return mx.nd.random.uniform(
            shape=(batch, channels, height, width), ctx=self._context, dtype=self._dtype
        )

    def copy(self, size: int) -> QueuedWork:
        """Return a copy into preallocated memory."""
        source, target = (mx.nd.ones(size // 4, ctx=self._context) for _ in range(2))
        return QueuedWork(partial(source.copyto, target), mx.nd.waitall)
