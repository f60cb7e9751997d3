"""The smallest change of the initial weights that there is, to see how far rounding alone takes a training."""

from __future__ import annotations

import numpy as np

from trainmark.workload.model import Weights
from trainmark.workload.precision import PRECISIONS, Precision

STORED_BITS = PRECISIONS["fp32"].fraction_bits
"""Weights travel as float32, whatever the precision."""

_STREAM = 1 << 21  # keeps the signs apart from the weights and the orders


def nudged_bits(precision: Precision) -> int:
    """Fraction bits of the last place that :func:`nudge` changes."""
    return min(PRECISIONS[precision].fraction_bits, STORED_BITS)


def nudge(weights: Weights, number: int, precision: Precision) -> Weights:
    """Every weight one unit in the last place up or down, as the coins of nudge ``number`` fall; zeros stay.

    Args:
        precision: whose last place is meant; for ``fp64`` it is float32's, see :data:`STORED_BITS`.
    """
    coins = np.random.Generator(np.random.PCG64([_STREAM, number]))
    nudged: Weights = {}
    for name, value in weights.items():
        signs = np.where(coins.random(value.shape) < 0.5, -1.0, 1.0)
        _, exponents = np.frexp(value)
        units = np.where(value == 0, 0.0, np.ldexp(1.0, exponents - 1 - nudged_bits(precision)))
        nudged[name] = (value + signs * units).astype(np.float32)
    return nudged
