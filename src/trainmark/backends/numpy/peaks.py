"""Matrix products and copies of NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from trainmark.backends.base import Options
from trainmark.backends.numpy.precision import DTYPES
from trainmark.backends.peaks import QueuedWork
from trainmark.workload.products import Product


class NumpyPeakKernels:
    """The CPU in one precision."""

    def __init__(self, options: Options) -> None:
        self._dtype = DTYPES[options.precision]

    def products(self, asked: Sequence[Product]) -> QueuedWork:
        """Return products into preallocated matrices."""
        rng = np.random.default_rng(0)
        operands = []
        for each in asked:
            left, right = (rng.random(shape).astype(self._dtype) for shape in each.operands)
            out = np.zeros((*left.shape[:-2], each.rows, each.columns), self._dtype)
            operands.append((left.swapaxes(-1, -2) if each.turned else left, right, out))

        def queue() -> None:
            for left, right, out in operands:
                np.matmul(left, right, out=out)

        return QueuedWork(queue)

    def copy(self, size: int) -> QueuedWork:
        """Return a copy into preallocated memory; NumPy copies on one core."""
        source = np.ones(size // 4, np.float32)
        target = np.zeros(size // 4, np.float32)
        return QueuedWork(partial(np.copyto, target, source))
