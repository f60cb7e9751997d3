"""What rounding does to a step.

The reference's operations are exact, or moved at random as rounding may move them.

The move of each operation bounds the rounding of any usual implementation, in the probabilistic
model of Higham and Mary (SIAM J. Sci. Comput. 41, 2019): rounding errors are independent, with mean
0. A sum of ``n`` terms in any order has ``n`` partial sums, so its error grows with ``√n``. Running
the step on moved operations shows what that does to each result, amplified as the network amplifies
it (Monte Carlo arithmetic, Parker 1997).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.workload.precision import PRECISIONS, Precision

Array = NDArray[Any]

_UNITS = 4.0
"""Units in the last place by which a function such as ``exp`` or a few operations in a row may be
off."""


class Arithmetic:
    """The operations of a step that round, as NumPy computes them."""

    def product(self, a: Array, b: Array) -> Array:
        """Return the matrix product of ``a`` and ``b``."""
        return a @ b

    def column_sums(self, values: Array) -> Array:
        """Return the sum of each column."""
        return values.sum(axis=0)

    def rounded(self, values: Array, terms: Any = 0.0) -> Array:  # noqa: ARG002
        """Return values that were computed one by one.

        Args:
            terms: absolute size of what was added to or subtracted from them.
        """
        return values


EXACT = Arithmetic()


def unit_of_sums(precision: Precision) -> float:
    """Return the relative rounding of sums and updates.

    Both are float32 in every shorter precision.

    In float64 the reference rounds as much as a backend, so it is doubled.
    """
    if precision == "fp64":
        return 2.0 ** -PRECISIONS["fp64"].fraction_bits
    return 2.0 ** -(PRECISIONS["fp32"].fraction_bits + 1)


class Moved(Arithmetic):
    """Operations whose results are moved at random.

    Args:
        precision: precision of the arithmetic to imitate.
        rng: draws the moves.
        mixed: whether the factors of products may have fewer bits than sums, as inside a network.
    """

    def __init__(
        self, precision: Precision, rng: np.random.Generator, *, mixed: bool = True
    ) -> None:
        arithmetic = PRECISIONS[precision]
        self.unit = unit_of_sums(precision)
        self._factor = 2.0 ** -(arithmetic.fraction_bits + 1) if mixed else self.unit
        self._mixed = mixed and arithmetic.mixed
        # With mixed precision, values between layers are stored in few bits, too.
        self._value = self._factor if self._mixed else self.unit
        self._rng = rng

    def product(self, a: Array, b: Array) -> Array:
        """Multiply; moves the smaller factor, which costs less, for both."""
        share = math.sqrt(2) * max(self._factor, math.sqrt(a.shape[-1]) * self.unit)
        a = self._shortened(a)
        b = self._shortened(b)
        a, b = (self._move(a, share), b) if a.size < b.size else (a, self._move(b, share))
        return self._stored(a @ b, max(self._value, math.sqrt(a.shape[-1]) * self.unit))

    def column_sums(self, values: Array) -> Array:
        """Add."""
        share = max(self._value, math.sqrt(len(values)) * self.unit)
        return self._stored(self._stored(values, share).sum(axis=0), share)

    def rounded(self, values: Array, terms: Any = 0.0) -> Array:
        """Move by a few units in the last place."""
        moves = self._rng.random(values.shape, dtype=np.float32) * 2 - 1
        return values + _UNITS * self._value * moves * (np.abs(values) + terms)

    def _stored(self, values: Array, share: float) -> Array:
        return self._move(self._shortened(values) if self._mixed else values, share)

    def _shortened(self, values: Array) -> Array:
        """Round to the bits of a factor.

        Equal values are rounded alike, so their errors don't average out.
        """
        if self._factor <= self.unit:
            return values
        fraction, exponent = np.frexp(values)
        return np.ldexp(
            np.rint(fraction / self._factor) * values.dtype.type(self._factor), exponent
        )

    def _move(self, values: Array, share: float) -> Array:
        return values * (
            1
            + share
            * (self._rng.random(values.shape, dtype=np.float32).astype(values.dtype) * 2 - 1)
        )
