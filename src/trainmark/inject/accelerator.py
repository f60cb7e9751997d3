"""PyTorch's accelerator in the user's process.

This is the only file of the observer that knows kinds of GPUs.

Only NVIDIA's GPUs were tested; AMD's report themselves as ``cuda``, too.
"""

from __future__ import annotations

from typing import Any

_KINDS = ("cuda", "xpu")
"""Kinds of accelerators with their own module in PyTorch, pinned memory and a profiler."""
_TF32_SINCE = (8, 0)
"""Compute capability of the first GPUs that multiply in TF32."""
COPIES = ("to", "cuda")
"""Methods of a tensor that copy it to a device."""


def kind(torch: Any) -> str | None:
    """Return the kind of the accelerator that this process can use, such as ``cuda``.

    The result is None without one.
    """
    if hasattr(torch, "accelerator"):  # PyTorch has it since 2.6
        found = torch.accelerator.current_accelerator()
        built_for = [] if found is None else [found.type]
    else:
        built_for = [each for each in _KINDS if hasattr(torch, each)]
    return next(
        (each for each in _KINDS if each in built_for and getattr(torch, each).is_available()), None
    )


def synchronize(torch: Any) -> None:
    """Wait for the accelerator, if there is one."""
    found = kind(torch)
    if found is not None:
        getattr(torch, found).synchronize()


def peak_bytes(torch: Any, device: Any) -> int | None:
    """Return the peak of the memory that PyTorch has allocated on a device.

    The result is None on a CPU or if it isn't counted.
    """
    return _counted(torch, device, "max_memory_allocated")


def allocated_bytes(torch: Any, device: Any) -> int | None:
    """Return the memory that PyTorch has allocated on a device.

    The result is None on a CPU or if it isn't counted.
    """
    return _counted(torch, device, "memory_allocated")


def _counted(torch: Any, device: Any, name: str) -> int | None:
    read = getattr(getattr(torch, device.type, None), name, None)
    return None if read is None or device.type == "cpu" else int(read(device))


def has_tf32(torch: Any) -> bool:
    """Whether the GPU multiplies in TF32."""
    return kind(torch) == "cuda" and torch.cuda.get_device_capability() >= _TF32_SINCE


def has_graphs(torch: Any) -> bool:
    """Whether steps can be captured in CUDA graphs."""
    return kind(torch) == "cuda"


def copies(torch: Any) -> tuple[str, ...]:
    """Return the methods of a tensor that copy it to a GPU, if PyTorch was built for one."""
    on_gpus = (
        torch.version.cuda
        or getattr(torch.version, "hip", None)
        or getattr(torch.version, "xpu", None)
    )
    return COPIES if on_gpus else ()
