"""Whether PyTorch can use this machine's devices."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

from trainmark.backends.examination import LEFT, RIGHT, Examination, try_products


def examine(devices: tuple[str, ...]) -> Examination:
    """What PyTorch was built for, and a product on each of ``devices``."""
    blind = None
    if built_for() and not torch.cuda.is_available():
        try:
            torch.cuda.init()
        except (RuntimeError, AssertionError) as error:
            blind = str(error).strip().splitlines()[0]
    architectures = tuple(torch.cuda.get_arch_list()) if torch.cuda.is_available() else None
    return Examination(built_for(), architectures, blind, try_products(devices, _multiply))


def built_for() -> str | None:
    """The accelerator library of this build; None for the CPU build."""
    if torch.version.cuda:
        return f"CUDA {torch.version.cuda}"
    return f"ROCm {torch.version.hip}" if torch.version.hip else None


def _multiply(device: str) -> tuple[NDArray[Any], str]:
    left, right = (torch.tensor(factor, dtype=torch.float32, device=device) for factor in (LEFT, RIGHT))
    product = left @ right
    return product.cpu().numpy(), str(product.device)
