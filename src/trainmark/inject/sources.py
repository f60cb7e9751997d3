"""Which loaders the steps read from, to tell an evaluation from a part of a step.

Many scripts never set their network to evaluation mode, and others compute without gradients as a
part of training, as to collect what they learn from. Batches of a loader that no step reads are
evaluated.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any


class Sources:
    """The loaders that were read.

    Attributes:
        current: number of the loader that delivered a batch last, since the last step and before
            its end; 0 if there is none.
        of_steps: numbers of the loaders that steps have read from.
    """

    def __init__(self) -> None:
        self.current = 0
        self.of_steps: set[int] = set()
        self._numbers: dict[int, tuple[Callable[[], Any], int]] = {}
        self._last = 0

    def number_of(self, loader: object) -> int:
        """Return the number of a loader; another one later has another number."""
        known = self._numbers.get(id(loader))
        if known is not None and known[0]() is loader:
            return known[1]
        self._last += 1
        self._numbers[id(loader)] = weakref.ref(loader), self._last
        return self._last

    def trains(self) -> None:
        """What is trained on comes from the current loader."""
        if self.current:
            self.of_steps.add(self.current)

    def stepped(self) -> None:
        """A step has ended."""
        self.trains()
        self.current = 0
