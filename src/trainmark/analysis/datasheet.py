"""Peak FLOP/s of GPUs by their manufacturers' datasheets: dense products, no sparsity.

From NVIDIA's datasheets and architecture white papers. ``fp32`` is arithmetic without tensor cores, ``fp64`` with them
if available; 16 bits accumulate in fp32. They hold at the highest clock, so measurements stay below them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_T = 1e12


@dataclass(frozen=True)
class Datasheet:
    """The datasheet of one model.

    Args:
        flops_per_second: peak by precision.
    """

    model: str
    flops_per_second: dict[str, float]


def _sheet(model: str, fp64: float, fp32: float, tf32: float | None, half: float) -> Datasheet:
    """Return the datasheet of a model, from TFLOP/s."""
    flops = {"fp64": fp64 * _T, "fp32": fp32 * _T, "fp16": half * _T}
    if tf32 is not None:  # from Ampere on
        flops |= {"tf32": tf32 * _T, "bf16": half * _T}
    return Datasheet(model, flops)


# By the end of the driver's name of the GPU; the name of a partition (MIG) continues, so it doesn't match.
_MODELS = (
    (r"\bH200$", _sheet("H200 SXM", 67, 67, 494.7, 989.4)),
    (r"\bH100 PCIe$", _sheet("H100 PCIe", 51, 51, 378, 756)),
    (r"\bH100 80GB HBM3$", _sheet("H100 SXM", 67, 67, 494.7, 989.4)),
    (r"\bA100-SXM4-80GB$", _sheet("A100 SXM 80 GB", 19.5, 19.5, 156, 312)),
    (r"\bA100 80GB PCIe$", _sheet("A100 PCIe 80 GB", 19.5, 19.5, 156, 312)),
    (r"\bA100-(SXM4|PCIE)-40GB$", _sheet("A100 40 GB", 19.5, 19.5, 156, 312)),
    (r"\bV100-SXM2-(16|32)GB$", _sheet("V100 SXM2", 7.8, 15.7, None, 125)),
    (r"\bV100-PCIE-(16|32)GB$", _sheet("V100 PCIe", 7, 14, None, 112)),
    (r"\bTesla T4$|\bT4$", _sheet("T4", 0.25, 8.1, None, 65)),
    (r"\bL40S$", _sheet("L40S", 1.4, 91.6, 183, 362)),
    (r"\bL4$", _sheet("L4", 0.47, 30.3, 60, 121)),
    (r"\bA10$", _sheet("A10", 0.49, 31.2, 62.5, 125)),
    (r"\bRTX 4090$", _sheet("RTX 4090", 1.29, 82.6, 82.6, 165.2)),
    (r"\bRTX 3090$", _sheet("RTX 3090", 0.56, 35.6, 35.6, 71.2)),
)


def find(device_name: str | None) -> Datasheet | None:
    """Return the datasheet of a GPU by its driver's name for it; None if unknown."""
    for pattern, sheet in _MODELS:
        if device_name and re.search(pattern, device_name):
            return sheet
    return None
