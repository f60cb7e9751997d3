"""Matrix products and copies of MXNet."""

from __future__ import annotations

from functools import partial

import mxnet as mx

from trainmark.backends.base import Options
from trainmark.backends.limits import Work


class MxnetLimits:
    """One device in one precision."""

    def __init__(self, options: Options) -> None:
        kind, _, index = options.device.partition(":")
        self._context = mx.gpu(int(index)) if kind == "cuda" else mx.cpu()
        self._dtype = "float64" if options.precision == "fp64" else "float32"

    def product(self, size: int) -> Work:
        """A product into a matrix that is there."""
        shape = {"shape": (size, size), "ctx": self._context, "dtype": self._dtype}
        left, right, out = (mx.nd.random.uniform(**shape) for _ in range(3))
        return Work(partial(mx.nd.dot, left, right, out=out), mx.nd.waitall)

    def copy(self, size: int) -> Work:
        """A copy into memory that is there."""
        source, target = (mx.nd.ones(size // 4, ctx=self._context) for _ in range(2))
        return Work(partial(source.copyto, target), mx.nd.waitall)
