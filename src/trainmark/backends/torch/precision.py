"""The arithmetic that PyTorch may use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from trainmark.workload.precision import Precision

_AMPERE = (8, 0)  # compute capability


@dataclass(frozen=True)
class TorchArithmetic:
    """How PyTorch computes in one precision.

    Args:
        devices: kinds of device that support it.
        since: compute capability of the first CUDA devices that support it.
        parameters: type of weights and inputs.
        autocast: type that the factors of products are cast to within a step; None for no cast.
        tf32: whether float32 products may use TF32.
        tensor_cores: whether a GPU computes products on tensor cores, which need channels last.
        scales_loss: whether the loss is scaled, since small gradients would vanish.
        flushes: whether ``fast`` may treat denormal numbers as zero on a CPU.
    """

    devices: tuple[str, ...]
    since: tuple[int, int] = (0, 0)
    parameters: torch.dtype = torch.float32
    autocast: torch.dtype | None = None
    tf32: bool = False
    tensor_cores: bool = False
    scales_loss: bool = False
    flushes: bool = False


ARITHMETIC: dict[Precision, TorchArithmetic] = {
    "fp32": TorchArithmetic(("cpu", "cuda", "xpu", "mps"), flushes=True),
    "tf32": TorchArithmetic(("cuda",), _AMPERE, tf32=True, tensor_cores=True),
    "bf16": TorchArithmetic(
        ("cpu", "cuda", "xpu"), _AMPERE, autocast=torch.bfloat16, tensor_cores=True
    ),
    "fp16": TorchArithmetic(("cuda",), autocast=torch.float16, tensor_cores=True, scales_loss=True),
    "fp64": TorchArithmetic(("cpu", "cuda"), parameters=torch.float64),
}


def supported(device: str, capability: tuple[int, int] | None = None) -> tuple[Precision, ...]:
    """Return the precisions of a kind of device; ``capability`` is that of a CUDA device."""
    return tuple(
        name
        for name, arithmetic in ARITHMETIC.items()
        if device in arithmetic.devices and (capability is None or capability >= arithmetic.since)
    )


@contextlib.contextmanager
def denormals_flushed(wanted: bool) -> Iterator[None]:
    """Treat denormal numbers as zero, if ``wanted``: in this thread and in those that it starts.

    Threads of PyTorch's pool keep the setting that they were started with.
    """
    torch.set_flush_denormal(wanted)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def autocast(precision: Precision, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Return the context for a forward pass."""
    dtype = ARITHMETIC[precision].autocast
    return contextlib.nullcontext() if dtype is None else torch.autocast(device.type, dtype=dtype)
