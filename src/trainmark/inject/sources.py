"""Which loaders the steps read from, to tell an evaluation from a part of a step.

Many scripts never set their network to evaluation mode, and others compute without gradients as a
part of training, as to collect what they learn from. Batches of a loader that no step reads are
evaluated.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any


class Numbers:
    """Numbers of things that may end before others have the same identity."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Callable[[], Any], int]] = {}
        self._things: dict[int, Callable[[], Any]] = {}
        self._last = 0

    def number_of(self, thing: object) -> int:
        """Return the number of a thing; another one later has another number."""
        known = self._known.get(id(thing))
        if known is not None and known[0]() is thing:
            return known[1]
        if known is not None:
            del self._things[known[1]]
        self._last += 1
        try:
            reference: Callable[[], Any] = weakref.ref(thing)
        except TypeError:
            reference = _Kept(thing)
        self._known[id(thing)] = reference, self._last
        self._things[self._last] = reference
        return self._last

    def get(self, number: int) -> Any:
        """Return the thing with a number; None if it does not exist any more."""
        reference = self._things.get(number)
        return None if reference is None else reference()


class _Kept:
    """Returns a thing that can't have weak references, as a weak reference would."""

    def __init__(self, thing: object) -> None:
        self._thing = thing

    def __call__(self) -> object:
        return self._thing


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
        self._numbers = Numbers()

    def number_of(self, loader: object) -> int:
        """Return the number of a loader; another one later has another number."""
        return self._numbers.number_of(loader)

    def trains(self) -> None:
        """What is trained on comes from the current loader."""
        if self.current:
            self.of_steps.add(self.current)

    def stepped(self) -> None:
        """A step has ended."""
        self.trains()
        self.current = 0
