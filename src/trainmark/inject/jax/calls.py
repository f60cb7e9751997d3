"""What calls of a function of JAX were given, and have returned."""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable
from typing import Any


class _NoArray:
    """Stands for an argument that is no array, such as a static one.

    It lacks attributes by which a user's object may look like an array, and weak references.
    """

    __slots__ = ()


_NO_ARRAY = _NoArray()


class Arrays:
    """Decides what is an array, of JAX or NumPy."""

    def __init__(self, jax: Any) -> None:
        self._tracer: Any = jax.core.Tracer
        self._kinds: Any = (jax.Array, importlib.import_module("numpy").ndarray)

    def has_tracers(self, leaves: list[Any]) -> bool:
        """Whether JAX traces a call, such as one inside of ``jax.grad`` or ``jax.vmap``."""
        return any(issubclass(kind, self._tracer) for kind in set(map(type, leaves)))

    def only(self, leaves: list[Any]) -> list[Any]:
        """Return leaves in which everything that is no array is replaced."""
        kinds = {kind for kind in set(map(type, leaves)) if issubclass(kind, self._kinds)}
        return [each if type(each) in kinds else _NO_ARRAY for each in leaves]


class Now:
    """A call that goes on, of one thread.

    Attributes:
        function: what is called.
        given: the leaves of its arguments.
        fed_back: for positions of arguments, those of the earlier results that they are.
        has_moved: whether it is given other weights than in the call before.
        may_evaluate: whether an evaluation has begun with it.
    """

    def __init__(self, function: Any, given: list[Any]) -> None:
        self.function = function
        self.given = given
        self.fed_back: dict[int, int] = {}
        self.has_moved = False
        self.may_evaluate = False


class Call:
    """Leaves of the arguments and the results of a call; without the arrays, which may be large.

    Args:
        given: the leaves of the arguments.
        returned: the leaves of the results, with their paths.

    Attributes:
        losses: the results that may be a loss, by their positions.
        examples: number of rows of each argument.
        repeated: positions of the arguments that the next call was given again.
    """

    def __init__(self, given: list[Any], returned: list[tuple[str, Any]]) -> None:
        self.sizes = sizes(given)
        self._given = [weakly(each) for each in given]
        self.examples = [rows(each) for each in given]
        self._returned = [(weakref.ref(each), id(each)) for _, each in returned]
        self.repeated: set[int] = set()
        numbers = [
            at for at, (_, each) in enumerate(returned) if each.shape == () and is_float(each)
        ]
        numbers.sort(key=lambda at: "loss" not in returned[at][0])
        self.losses = {at: returned[at][1] for at in numbers}

    def was_given(self, array: Any) -> bool:
        """Whether an array was among the arguments."""
        return any(given() is array for given in self._given)

    def is_followed_by(self, given: list[Any]) -> None:
        """Keep which arguments the next call is given again."""
        pairs = enumerate(zip(self._given, given))  # noqa: B905  (Python 3.8)
        self.repeated = {at for at, (mine, other) in pairs if mine() is other}

    def result(self, position: int) -> Any:
        """Return the result at a position; None if it does not exist any more."""
        if position >= len(self._returned):
            return None
        return self._returned[position][0]()

    def returned(self) -> dict[int, int]:
        """Return the positions of the results that still exist, by their ids."""
        return {key: at for at, (each, key) in enumerate(self._returned) if each() is not None}


def nothing() -> Any:
    """Return None, as a reference to what does not exist."""
    return None


def weakly(thing: Any) -> Callable[[], Any]:
    """Return a weak reference, or what returns None for what can't have any, such as a number."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return nothing


def at(values: list[Any], position: int | None) -> Any:
    """Return the value at a position; None if there is no such position."""
    return None if position is None or position >= len(values) else values[position]


def rows(array: Any) -> int | None:
    """Return the length of the first dimension; None for a number."""
    return (getattr(array, "shape", ()) or (None,))[0]


def is_float(array: Any) -> bool:
    """Whether an array holds floating-point numbers."""
    return "float" in str(getattr(array, "dtype", ""))


def sizes(leaves: list[Any]) -> list[tuple[int, tuple[int, ...]]]:
    """Return id and shape of each leaf; that of numbers is empty."""
    return [(id(each), tuple(getattr(each, "shape", ()))) for each in leaves]
