"""Quantiles of Student's t distribution, without SciPy."""

from __future__ import annotations

import math
from functools import lru_cache


@lru_cache(maxsize=1024)
def t_quantile(confidence: float, degrees: float) -> float:
    """Return the ``t`` for which a share ``confidence`` of the distribution is in ``[-t, t]``.

    With ``x = ν / (ν + t²)`` the share outside is ``I_x(ν/2, 1/2)`` (Abramowitz and Stegun 26.7.1,
    26.5.27), which grows with ``x``, so ``x`` is found by bisection to the last bit.

    Args:
        confidence: between 0 and 1, such as 0.95.
        degrees: degrees of freedom ν, above 0; Welch's may be fractional.
    """
    if not 0 < confidence < 1 or degrees <= 0:
        raise ValueError(
            f"no t quantile for confidence {confidence} and {degrees} degrees of freedom"
        )
    low = 0.0
    high = 1.0
    middle = 0.5
    while low < middle < high:
        if incomplete_beta(degrees / 2, 0.5, middle) < 1 - confidence:
            low = middle
        else:
            high = middle
        middle = (low + high) / 2
    return math.sqrt(degrees * (1 - high) / high)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function ``I_x(a, b)`` for ``0 < x < 1``.

    The continued fraction DLMF 8.17.22 is evaluated with Lentz's method; where it converges slowly,
    the symmetry DLMF 8.17.4 is used.
    """
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta) / a
    value = 1.0
    numerator = 1.0
    denominator = 0.0
    for index in range(1, 500):
        term = _coefficient(a, b, index) * x
        denominator = 1 / (1 + term * denominator)
        numerator = 1 + term / numerator
        value *= numerator * denominator
        if abs(numerator * denominator - 1) < 1e-15:
            break
    return front / value


def _coefficient(a: float, b: float, index: int) -> float:
    """Return ``d_index / x`` of DLMF 8.17.23."""
    m = index // 2
    if index % 2:
        return -(a + m) * (a + b + m) / ((a + 2 * m) * (a + 2 * m + 1))
    return m * (b - m) / ((a + 2 * m - 1) * (a + 2 * m))
