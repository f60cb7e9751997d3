"""Find the batch size at which one device overtakes another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Crossing:
    """Two devices at several batch sizes.

    Args:
        seconds: seconds per example by batch size, as (on the CPU, on the accelerator).
        batch: batch size from which on the accelerator is faster; None if it is at every size, or
            at none.
        faster: whether the accelerator is faster at the largest size.
    """

    seconds: dict[int, tuple[float, float]]
    batch: float | None
    faster: bool


def crossing(cpu: Mapping[int, float], accelerator: Mapping[int, float]) -> Crossing:
    """Find from which size on the accelerator is always faster.

    Between two sizes, the interpolation is log-linear.

    Args:
        cpu, accelerator: seconds of a step by batch size, with at least one size in common.
    """
    sizes = sorted(cpu.keys() & accelerator.keys())
    lead = {size: math.log(cpu[size] / accelerator[size]) for size in sizes}
    batch = None
    for smaller, larger in itertools.pairwise(sizes):
        if lead[smaller] <= 0 < lead[larger]:
            share = -lead[smaller] / (lead[larger] - lead[smaller])
            batch = math.exp(math.log(smaller) + share * math.log(larger / smaller))
    return Crossing(
        seconds={size: (cpu[size] / size, accelerator[size] / size) for size in sizes},
        batch=batch if lead[sizes[-1]] > 0 else None,
        faster=lead[sizes[-1]] > 0,
    )
