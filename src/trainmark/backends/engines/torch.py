"""PyTorch's devices and settings, for PyTorch and for Keras on PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from trainmark.backends.base import Device, Options
from trainmark.workload.precision import Precision

OLDEST, NEWEST = "2.5", "2.13"  # oldest: fused optimisers on the CPU, torch.amp.GradScaler, capturable RMSprop


def packages() -> dict[str, str]:
    """Return the versions of PyTorch and of what it was built with."""
    cuda = {"cuda": torch.version.cuda, "cudnn": str(torch.backends.cudnn.version())} if torch.version.cuda else {}
    return {"torch": torch.__version__, **cuda}


def gpus(precisions: Callable[[tuple[int, int]], tuple[Precision, ...]]) -> list[Device]:
    """Return every CUDA device.

    Args:
        precisions: returns the precisions of a device with that compute capability.
    """
    devices = []
    for index in range(torch.cuda.device_count()):
        found = torch.cuda.get_device_properties(index)
        able = precisions((found.major, found.minor))
        devices.append(Device(f"cuda:{index}", found.name, "accelerator", found.total_memory, able))
    return devices


def prepare(options: Options, *, tf32: bool) -> torch.device:
    """Set threads, arithmetic and share of memory, and return the device, which becomes the current one.

    ``fp32`` is IEEE single precision: TF32 and reduced-precision sums are off unless requested by name.
    """
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    device = torch.device(options.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # streams and graphs are created on the current device
        if options.memory_fraction is not None:
            torch.cuda.set_per_process_memory_fraction(options.memory_fraction, device)
    return device


def set_threads(number: int) -> None:
    """Compute with this many CPU threads from now on."""
    torch.set_num_threads(number)


def random_states(device: torch.device) -> list[torch.Tensor]:
    """Return the states of PyTorch's random numbers: on the CPU and, if it is another one, on the device."""
    states = [torch.get_rng_state()]
    if device.type == "mps":
        states.append(torch.mps.get_rng_state())
    elif device.type != "cpu":
        states.append(torch.get_device_module(device).get_rng_state(device))
    return states


def set_random_states(device: torch.device, states: list[torch.Tensor]) -> None:
    """Set the states that :func:`random_states` returned."""
    torch.set_rng_state(states[0])
    if device.type == "mps":
        torch.mps.set_rng_state(states[1])
    elif device.type != "cpu":
        torch.get_device_module(device).set_rng_state(states[1], device)


def synchronize(device: torch.device) -> None:
    """Wait for the device; the CPU computes synchronously."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def settings() -> dict[str, Any]:
    """Return the settings as PyTorch reports them now."""
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,
        "threads": torch.get_num_threads(),
    }


def peak_bytes(device: torch.device) -> int | None:
    """Return PyTorch's peak memory on a CUDA device."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
