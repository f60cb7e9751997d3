"""Whether the weights that a gradient is computed for move as in a training.

This finds the steps whose weights are changed outside of jitted functions, or copied there. A
function may compute gradients of its input, too, for example to explain a prediction; then one
input differs much more from the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .calls import is_float, nothing, weakly
from .gradients import is_of
from .weights import copied, has_moved, is_readable

_FEWEST_MOVES = 3
"""Number of times in a row that weights must have moved a little."""
_MOST_CALLS = 50
"""Number of calls after which we no longer look."""
_MOST_BYTES = 1 << 22
"""Most bytes of weights that are compared; the smallest arrays first."""


class Moved:
    """The weights that a function was given in its calls.

    Attributes:
        steps: number of calls in a row that each had new weights.
    """

    def __init__(self) -> None:
        self._calls = 0
        self._moves = 0
        self._values: list[Any] = []
        self._weight: Callable[[], Any] = nothing
        self._position = 0
        self.steps = 0

    def called(self, given: list[Any], shapes: set[tuple[int, ...]]) -> bool:
        """A function is called that is not known as a step; return whether it is one.

        Args:
            given: the leaves of its arguments.
            shapes: those of which it computes gradients.
        """
        self._calls += 1
        if self._calls > _MOST_CALLS:
            return False
        weights = {
            at: each
            for at, each in enumerate(given)
            if is_float(each) and is_of(each, shapes) and is_readable(each)
        }
        if not weights:
            return False
        self._position = min(weights)
        if not self.are_new(given):
            return False
        values = []
        left = _MOST_BYTES
        for each in sorted(weights.values(), key=_size):
            left -= each.nbytes
            if left >= 0:
                values.append(copied(each))
        if self._values and len(values) == len(self._values) and has_moved(self._values, values):
            self._moves += 1
            self.steps += 1
        else:
            self._moves = 0
            self.steps = 1
        self._values = values
        if self._moves < _FEWEST_MOVES:
            return False
        self._values = []
        return True

    def are_new(self, given: list[Any]) -> bool:
        """Whether the function is given other weights than in the call before.

        Gradients of several batches may be added up for one step.
        """
        if self._position >= len(given):
            return False
        weight = given[self._position]
        if self._weight() is weight:
            return False
        self._weight = weakly(weight)
        return True


def _size(array: Any) -> int:
    size: int = array.size
    return size
