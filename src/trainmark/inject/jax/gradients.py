"""Which functions of JAX compute gradients, and of arrays of which shapes.

A jitted function shows this only while it is traced, in its first call.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Generator
from typing import Any

from .calls import is_float


class Gradients:
    """The shapes of what was differentiated.

    Attributes:
        begins_eagerly: is called before a gradient is computed outside of jitted functions.

    Args:
        current: returns the jitted function whose call goes on; None outside of all calls.
        eager: is given the arrays and the value of a function that is differentiated outside of
            jitted functions.
    """

    def __init__(
        self, jax: Any, current: Callable[[], Any], eager: Callable[[list[Any], Any], None]
    ) -> None:
        self._jax = jax
        self._current = current
        self.begins_eagerly: Callable[[], None] = _ignore
        self._eager = eager
        self._inside = threading.local()
        self._in_loop: weakref.WeakSet[Any] = weakref.WeakSet()
        self._shapes: weakref.WeakKeyDictionary[Any, set[tuple[int, ...]]] = (
            weakref.WeakKeyDictionary()
        )

    def differentiates(self, arguments: dict[str, Any]) -> Generator[None, Any, None]:
        """Observe ``jax.vjp``, which ``jax.grad`` and its relatives call."""
        leaves = self._jax.tree_util.tree_leaves(arguments["primals"])
        shapes = {tuple(each.shape) for each in leaves if is_float(each)}
        function = self._current()
        if function is not None:
            self._shapes.setdefault(function, set()).update(shapes)
            if getattr(self._inside, "loops", 0):
                self._in_loop.add(function)
            return
        tracer = self._jax.core.Tracer
        if not leaves or any(isinstance(each, tracer) for each in leaves):
            return
        self.begins_eagerly()
        found = yield
        self._eager(leaves, found[0])

    def loops(self, _: Any) -> Generator[None, Any, None]:
        """Observe a loop that JAX traces, whose body may compute gradients."""
        self._inside.loops = getattr(self._inside, "loops", 0) + 1
        try:
            yield
        finally:
            self._inside.loops -= 1

    def are_in_loop(self, function: Any) -> bool:
        """Whether a function computes gradients inside of a loop, such as ``jax.lax.scan``."""
        return function in self._in_loop

    def all_shapes(self) -> set[tuple[int, ...]]:
        """Return the shapes that any function differentiates."""
        return set().union(*self._shapes.values())

    def shapes_of(self, function: Any) -> set[tuple[int, ...]]:
        """Return the shapes that a function differentiates; empty if it was never seen to."""
        return self._shapes.get(function, set())


def _ignore() -> None:
    return None


def is_of(array: Any, shapes: set[tuple[int, ...]]) -> bool:
    """Whether an array may be a weight that is differentiated, perhaps one of an ensemble."""
    shape = tuple(array.shape)
    return any(each and shape[-len(each) :] == each for each in shapes)
