"""Check whether MXNet can use this machine's devices."""

from __future__ import annotations

from typing import Any

import mxnet as mx
from numpy.typing import NDArray

from trainmark.backends.examination import LEFT, RIGHT, Examination


def examine() -> Examination:
    """Return whether MXNet was built for CUDA."""
    built = "CUDA" if mx.runtime.Features().is_enabled("CUDA") else None
    return Examination(built, None, None)


def multiply(device: str) -> tuple[NDArray[Any], str]:
    """Compute ``LEFT @ RIGHT`` on ``device``."""
    kind, _, index = device.partition(":")
    context = mx.gpu(int(index)) if kind == "cuda" else mx.cpu()
    product = mx.nd.dot(mx.nd.array(LEFT, ctx=context), mx.nd.array(RIGHT, ctx=context))
    return product.asnumpy(), str(product.context)
