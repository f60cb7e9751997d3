"""Gradients by central differences, the definition itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]


def by_differences(
    function: Callable[[Float64], float], at: Float64, step: float = 1e-6
) -> Float64:
    """Gradient of ``function`` at ``at``: ``(f(x + h) - f(x - h)) / 2h`` in every direction."""
    gradient = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        there = at.copy()
        there[index] += step
        ahead = function(there)
        there[index] -= 2 * step
        gradient[index] = (ahead - function(there)) / (2 * step)
    return gradient
