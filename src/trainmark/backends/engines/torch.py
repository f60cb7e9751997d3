"""PyTorch's devices and switches, for PyTorch itself and for Keras on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from trainmark.backends.base import Device, Options
from trainmark.workload.precision import Precision

OLDEST, NEWEST = "2.5", "2.13"  # oldest: fused optimisers on the CPU, torch.amp.GradScaler, capturable RMSprop


def packages() -> dict[str, str]:
    """PyTorch, and what it was built with."""
    cuda = {"cuda": torch.version.cuda, "cudnn": str(torch.backends.cudnn.version())} if torch.version.cuda else {}
    return {"torch": torch.__version__, **cuda}


def gpus(precisions: Callable[[tuple[int, int]], tuple[Precision, ...]]) -> list[Device]:
    """Every CUDA device.

    Args:
        precisions: of a device of that compute capability.
    """
    devices = []
    for index in range(torch.cuda.device_count()):
        found = torch.cuda.get_device_properties(index)
        able = precisions((found.major, found.minor))
        devices.append(Device(f"cuda:{index}", found.name, "accelerator", found.total_memory, able))
    return devices


def prepare(options: Options, *, tf32: bool) -> torch.device:
    """Set threads, arithmetic and share of memory, and return the device, which is the current one from now on.

    ``fp32`` is IEEE single precision: TF32 and reduced-precision sums are off unless asked for by name.
    """
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    device = torch.device(options.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # streams and graphs are made on the current device
        if options.memory_fraction is not None:
            torch.cuda.set_per_process_memory_fraction(options.memory_fraction, device)
    return device


def synchronize(device: torch.device) -> None:
    """Wait for the device; the CPU computes at once."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def settings() -> dict[str, Any]:
    """The switches as PyTorch reports them now."""
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,
        "threads": torch.get_num_threads(),
    }


def peak_bytes(device: torch.device) -> int | None:
    """Most memory that PyTorch held on a CUDA device."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
