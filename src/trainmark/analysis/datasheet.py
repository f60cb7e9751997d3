"""Peak FLOP/s of GPUs by their manufacturers' datasheets: dense products, no sparsity.

The figures are from NVIDIA's datasheets and architecture white papers. ``fp32`` is arithmetic
without tensor cores, ``fp64`` with them if available; 16 bits accumulate in fp32. They hold at the
highest clock, so measurements stay below them.
"""

from __future__ import annotations

import re

_T = 1e12


def _sheet(fp64: float, fp32: float, tf32: float | None, half: float) -> dict[str, float]:
    """Return a model's FLOP/s by precision, from TFLOP/s."""
    flops = {"fp64": fp64 * _T, "fp32": fp32 * _T, "fp16": half * _T}
    if tf32 is not None:  # GPUs from Ampere on have both
        flops |= {"tf32": tf32 * _T, "bf16": half * _T}
    return flops


# The patterns match the end of the driver's name of the GPU. The name of a partition (MIG)
# continues, so it doesn't match.
_MODELS = (
    (r"\bH200$", _sheet(67, 67, 494.7, 989.4)),
    (r"\bH100 PCIe$", _sheet(51, 51, 378, 756)),
    (r"\bH100 80GB HBM3$", _sheet(67, 67, 494.7, 989.4)),
    (r"\bA100-SXM4-80GB$", _sheet(19.5, 19.5, 156, 312)),
    (r"\bA100 80GB PCIe$", _sheet(19.5, 19.5, 156, 312)),
    (r"\bA100-(SXM4|PCIE)-40GB$", _sheet(19.5, 19.5, 156, 312)),
    (r"\bV100-SXM2-(16|32)GB$", _sheet(7.8, 15.7, None, 125)),
    (r"\bV100-PCIE-(16|32)GB$", _sheet(7, 14, None, 112)),
    (r"\bTesla T4$|\bT4$", _sheet(0.25, 8.1, None, 65)),
    (r"\bL40S$", _sheet(1.4, 91.6, 183, 362)),
    (r"\bL4$", _sheet(0.47, 30.3, 60, 121)),
    (r"\bA10$", _sheet(0.49, 31.2, 62.5, 125)),
    (r"\bRTX 4090$", _sheet(1.29, 82.6, 82.6, 165.2)),
    (r"\bRTX 3090$", _sheet(0.56, 35.6, 35.6, 71.2)),
)


def find(device_name: str | None) -> dict[str, float]:
    """Return a GPU's peak FLOP/s by precision, by its driver's name for it; empty if unknown."""
    for pattern, sheet in _MODELS:
        if device_name and re.search(pattern, device_name):
            return sheet
    return {}
