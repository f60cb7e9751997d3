"""Weights that an evaluation is given and returns as they are, next to its metrics.

JAX returns copies of them, which the next call of the evaluation is given.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .calls import weakly
from .weights import is_readable


class PassedOn:
    """The functions that return weights as they are, and their latest copies."""

    def __init__(self) -> None:
        self._positions: weakref.WeakKeyDictionary[Any, list[int]] = weakref.WeakKeyDictionary()
        self._copies: list[Callable[[], Any]] = []

    def are_returned(
        self, function: Any, given: list[Any], returned: list[Any], shapes: set[tuple[int, ...]]
    ) -> bool:
        """Whether all that a function returns with these shapes are arrays that it was given.

        An average of weights may be equal to two of the given arrays, before it has changed.
        """
        if function in self._positions:
            return True
        positions = [at for at, each in enumerate(returned) if each.shape in shapes]
        given = [each for each in given if getattr(each, "shape", None) in shapes]
        arrays = [*given, *(returned[at] for at in positions)]
        if not positions or not all(map(is_readable, arrays)):
            return False
        for position in positions:
            if sum(_are_equal(each, returned[position]) for each in given) != 1:
                return False
        self._positions[function] = positions
        return True

    def returns(self, function: Any, returned: list[Any]) -> None:
        """Keep which copies of the weights a call has returned, if it passes them on."""
        positions = self._positions.get(function)
        if positions is not None:
            self._copies = [weakly(returned[at]) for at in positions if at < len(returned)]

    def is_among(self, given: list[Any]) -> bool:
        """Whether one of the latest copies is among the arguments of a call."""
        copies = [copy() for copy in self._copies]
        return any(each is copy for copy in copies if copy is not None for each in given)


def _are_equal(one: Any, other: Any) -> bool:
    if one.shape != other.shape:
        return False
    return bool((getattr(one, "_value", one) == getattr(other, "_value", other)).all())
