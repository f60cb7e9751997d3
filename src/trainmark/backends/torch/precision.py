"""What arithmetic PyTorch is allowed to use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from trainmark.backends.base import Precision

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


def set_arithmetic(precision: Precision) -> None:
    """``fp32`` is IEEE single precision: TF32 and reduced-precision sums are off unless asked for by name."""
    tf32 = precision == "tf32"
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


@contextlib.contextmanager
def denormals_flushed(wanted: bool) -> Iterator[None]:
    """Treat numbers below the normal range as zero, where ``wanted``: in this thread and in those that it starts.

    Threads of PyTorch's pool keep the setting that they were started with.
    """
    torch.set_flush_denormal(wanted)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def parameter_dtype(precision: Precision) -> torch.dtype:
    """The type of weights and inputs; the 16-bit precisions keep float32 weights and cast within the step."""
    return torch.float64 if precision == "fp64" else torch.float32


def autocast(precision: Precision, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """The context in which a forward pass runs."""
    if precision not in _AUTOCAST:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=_AUTOCAST[precision])


def settings() -> dict[str, Any]:
    """The switches as PyTorch reports them now."""
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "threads": torch.get_num_threads(),
    }
