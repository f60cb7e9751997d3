"""The smallest possible change of the initial weights, to measure the effect of rounding on a training."""

from __future__ import annotations

import numpy as np

from trainmark.workload.model import Weights
from trainmark.workload.precision import PRECISIONS, Precision

STORED_BITS = PRECISIONS["fp32"].fraction_bits
"""Weights are sent as float32, whatever the precision."""

_STREAM = 1 << 21  # a random stream different from those of weights and orders


def nudged_bits(precision: Precision) -> int:
    """Return the number of fraction bits, whose last one :func:`nudge` changes."""
    return min(PRECISIONS[precision].fraction_bits, STORED_BITS)


def nudge(weights: Weights, number: int, precision: Precision) -> Weights:
    """Move every weight by one unit in the last place, up or down at random, seeded by ``number``; zeros stay.

    Args:
        precision: precision of the last place; for ``fp64`` it is float32's, see :data:`STORED_BITS`.
    """
    coins = np.random.Generator(np.random.PCG64([_STREAM, number]))
    nudged: Weights = {}
    for name, value in weights.items():
        signs = np.where(coins.random(value.shape) < 0.5, -1.0, 1.0)
        _, exponents = np.frexp(value)
        units = np.where(value == 0, 0.0, np.ldexp(1.0, exponents - 1 - nudged_bits(precision)))
        nudged[name] = (value + signs * units).astype(np.float32)
    return nudged
