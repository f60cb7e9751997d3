"""Matrix products, convolutions and copies of PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from trainmark.backends.base import Options
from trainmark.backends.engines import torch as engines
from trainmark.backends.peaks import QueuedWork
from trainmark.backends.torch.precision import ARITHMETIC
from trainmark.workload.products import Convolution, Product


class TorchPeakKernels:
    """One device in one precision."""

    def __init__(self, options: Options) -> None:
        arithmetic = ARITHMETIC[options.precision]
        self._device = engines.prepare(options, tf32=arithmetic.tf32)
        self._wait = partial(engines.synchronize, self._device)
        self._dtype = arithmetic.autocast or arithmetic.parameters

    def products(self, asked: Sequence[Product]) -> QueuedWork:
        """Return products into preallocated matrices."""
        operands = []
        for each in asked:
            left, right = (self._random(*shape) for shape in each.operands)
            out = self._random(*left.shape[:-2], each.rows, each.columns)
            operands.append((left.mT if each.turned else left, right, out))

        def queue() -> None:
            for left, right, out in operands:
                torch.matmul(left, right, out=out)

        return QueuedWork(queue, self._wait)

    def convolutions(self, asked: Sequence[Convolution]) -> QueuedWork:
        """Return forward and backward convolutions, channels first."""
        operands = []
        for each in asked:
            x = self._images(*each.input_shape)
            gradient = self._images(*each.output_shape)
            kernel = self._random(each.filters, each.channels, each.size, each.size)
            operands.append(
                (
                    x,
                    gradient,
                    kernel,
                    [each.stride] * 2,
                    [each.padding] * 2,
                    [each.by_input, True, False],
                )
            )

        def queue() -> None:
            for x, gradient, kernel, stride, padding, wanted in operands:
                torch.nn.functional.conv2d(x, kernel, stride=stride, padding=padding)
                torch.ops.aten.convolution_backward(
                    gradient, x, kernel, None, stride, padding, [1, 1], False, [0, 0], 1, wanted
                )

        return QueuedWork(torch.no_grad()(queue), self._wait)

    def _images(self, batch: int, height: int, width: int, channels: int) -> torch.Tensor:
        return self._random(batch, channels, height, width)

    def _random(self, *shape: int) -> torch.Tensor:
        return torch.rand(shape, device=self._device).to(self._dtype)

    def copy(self, size: int) -> QueuedWork:
        """Return a copy into preallocated memory."""
        source, target = (torch.ones(size // 4, device=self._device) for _ in range(2))
        return QueuedWork(partial(target.copy_, source), self._wait)
