"""Things of the user's, told apart by identity: their own ``__hash__`` and ``__eq__`` don't run."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any


class Identities:
    """A set of things, which it does not keep alive.

    A class may compute its hash from attributes that a new object does not have yet.
    """

    def __init__(self) -> None:
        self._things: dict[int, weakref.ref[Any]] = {}

    def add(self, thing: object) -> None:
        """Add a thing that can have weak references."""
        key = id(thing)

        def forget(reference: object) -> None:
            if self._things.get(key) is reference:  # another thing may have the identity by now
                del self._things[key]

        self._things[key] = weakref.ref(thing, forget)

    def __contains__(self, thing: object) -> bool:
        reference = self._things.get(id(thing))
        return reference is not None and reference() is thing

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self._things.values()):
            thing = reference()
            if thing is not None:
                yield thing

    def clear(self) -> None:
        """Forget all of them."""
        self._things.clear()
