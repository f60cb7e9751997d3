"""Whether PyTorch can use this machine's devices."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

from trainmark.backends.examination import LEFT, RIGHT, Examination, first_line


def examine() -> Examination:
    """What PyTorch was built for."""
    blind = None
    if built_for() and not torch.cuda.is_available():
        try:
            torch.cuda.init()
        except Exception as error:  # noqa: BLE001  (its reasons come as several kinds of exception)
            blind = first_line(error)
    architectures = tuple(torch.cuda.get_arch_list()) if torch.cuda.is_available() else None
    return Examination(built_for(), architectures, blind)


def built_for() -> str | None:
    """The accelerator library of this build; None for the CPU build."""
    if torch.version.cuda:
        return f"CUDA {torch.version.cuda}"
    return f"ROCm {torch.version.hip}" if torch.version.hip else None


def multiply(device: str) -> tuple[NDArray[Any], str]:
    """``LEFT @ RIGHT`` on ``device``, and where it lay."""
    left, right = (torch.tensor(factor, dtype=torch.float32, device=device) for factor in (LEFT, RIGHT))
    product = left @ right
    return product.cpu().numpy(), str(product.device)
