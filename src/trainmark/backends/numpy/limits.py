"""Matrix products and copies of NumPy."""

from __future__ import annotations

from functools import partial

import numpy as np

from trainmark.backends.base import Options
from trainmark.backends.limits import Work


class NumpyLimits:
    """The CPU in one precision."""

    def __init__(self, options: Options) -> None:
        self._dtype = np.float64 if options.precision == "fp64" else np.float32

    def product(self, size: int) -> Work:
        """A product into a matrix that is there."""
        rng = np.random.default_rng(0)
        left, right, out = (rng.random((size, size)).astype(self._dtype) for _ in range(3))
        return Work(partial(np.matmul, left, right, out=out))

    def copy(self, size: int) -> Work:
        """A copy into memory that is there; by one core, as NumPy copies."""
        source, target = np.ones(size // 4, np.float32), np.zeros(size // 4, np.float32)
        return Work(partial(np.copyto, target, source))
