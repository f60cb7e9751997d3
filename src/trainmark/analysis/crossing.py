"""At which batch size one device overtakes another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Crossing:
    """Two devices at several batch sizes.

    Args:
        seconds: of an example, as (on the CPU, on the accelerator), by batch size.
        batch: from which on the accelerator is faster; None where it is so at every size, or at none.
        faster: at the largest size, the accelerator.
    """

    seconds: dict[int, tuple[float, float]]
    batch: float | None
    faster: bool


def crossing(cpu: Mapping[int, float], accelerator: Mapping[int, float]) -> Crossing:
    """Where the accelerator overtakes the CPU, for good: between two sizes on straight lines of logarithms.

    Args:
        cpu, accelerator: seconds of a step by batch size; at least one size in common.
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
