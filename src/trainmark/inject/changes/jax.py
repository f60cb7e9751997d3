"""Changes to a training with JAX, and facts about it."""

from __future__ import annotations

import copy
import functools
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType, MethodType
from typing import Any

import jax

from ..jax.functions import caller_of, unwrapped
from ..patch import around, replace
from . import OLD_VALUES_AT, Change
from .facts import facts_of
from .reported import Reported

_KEPT = "lines", "samples", "early", "late", "known", "known_late", "known_at"
"""Facts of the script's lines. Parts of a step are hidden in compiled functions."""
_READS = "item", "tolist", "__array__", "__float__", "__int__", "__format__", "__str__"
"""Methods of an array that give its value to the script."""
_MOST_PLACES = 10
"""Most lines that the proof of a change or a fact names."""
_OPTIONS = (
    "in_shardings",
    "out_shardings",
    "static_argnums",
    "static_argnames",
    "keep_unused",
    "device",
    "backend",
    "inline",
    "compiler_options",
)
"""Arguments of ``jax.jit`` that a function keeps when it donates others."""


def facts(change: Change) -> None:
    """Report the user's lines that take the most time, from the first step on.

    ``jits`` are the lines where functions with the same code were jitted again, and how often.
    """
    observer = change.observer
    every = facts_of(observer)
    switches = every.switches
    switches.watch("disable_jit", lambda: bool(jax.config.jax_disable_jit))
    switches.watch("debug_nans", lambda: bool(jax.config.jax_debug_nans))
    jits: Counter[str] = Counter()

    def stepped(real: Any, /, *args: Any, **more: Any) -> None:
        real(*args, **more)
        every.begin(kept=_KEPT)
        switches.stepped()

    def jitted(found: Any) -> Any:
        frame = caller_of(sys._getframe(2))
        if observer.steps and hasattr(found, "lower") and observer.is_users(frame):
            place = observer.users_place(frame)
            jits[place] += 1
            every.found["jits"] = dict(jits.most_common(_MOST_PLACES))
        return found

    around(observer, "stepped", stepped)
    replace(jax, "jit", jitted)


def no_debug_nans(change: Change) -> None:
    """Don't look for NaN in each result."""
    _switch_off(change, "jax_debug_nans")


def no_disable_jit(change: Change) -> None:
    """Compile what is jitted."""
    _switch_off(change, "jax_disable_jit")


def _switch_off(change: Change, name: str) -> None:
    """Keep a switch of JAX off that the script turns on."""

    def updated(real: Callable[..., Any], option: str, value: Any) -> None:
        if option == name and value:
            change.took(f"{name} stays off")
        else:
            real(option, value)

    if getattr(jax.config, name):
        change.took(f"{name} is turned off")
        jax.config.update(name, False)
    around(jax.config, "update", updated)


def jit_once(change: Change) -> None:
    """Jit functions with the same code once, so that they are compiled once."""
    observer = change.observer
    made: dict[Any, Any] = {}

    def jitted(found: Any) -> Any:
        frame = caller_of(sys._getframe(2))
        function: Any = getattr(found, "__wrapped__", None)
        code = getattr(function, "__code__", None)
        if code is None or not observer.is_users(frame):
            return found
        key = code, frame.f_code, frame.f_lasti
        earlier = made.setdefault(key, found)
        if earlier is found:
            return found
        if not _are_alike(earlier.__wrapped__, function):
            name = function.__name__
            change.keeps(lambda: f"{name} has other values from outside each time it is made")
            made[key] = found
            return found
        change.took(f"{function.__name__} at {observer.users_place(frame)} is jitted once")
        return earlier

    replace(jax, "jit", jitted)


def donate(change: Change) -> None:
    """Let steps write their results to the arrays that they are given."""
    observer = change.observer

    def jitted(found: Any) -> Any:
        frame = sys._getframe(2)
        given = frame.f_locals
        is_users = observer.is_users(caller_of(frame))
        if not is_users or not hasattr(found, "lower") or _donates(given):
            return found
        options = {name: given[name] for name in _OPTIONS if _is_set(given.get(name))}
        return _Donating(found, given["fun"], options, change)

    replace(jax, "jit", jitted)


def no_sync(change: Change) -> None:
    """Give the user's lines that only report a result what their first call returned."""
    arrays = type(jax.numpy.zeros(()))
    results: dict[Any, Any] = {}
    stale_places: dict[str, None] = {}
    reported = Reported()

    def stale(name: str, real: Callable[..., Any], self: Any, /, *args: Any, **more: Any) -> Any:
        frame = sys._getframe(2)
        if not change.observer.is_users(frame):
            return real(self, *args, **more)
        if not reported.is_only_reported(frame, name):
            place = functools.partial(change.observer.users_place, frame)
            change.keeps(lambda: f"the script computes with what {place()} reads")
            return real(self, *args, **more)
        key = _place_of_call(frame, name, self)
        if key not in results:
            results[key] = real(self, *args, **more)
            # Python may specialise the same call, which is then at another instruction.
            stale_places[change.observer.users_place(frame)] = None
            change.proves(OLD_VALUES_AT + "; ".join(list(stale_places)[:_MOST_PLACES]))
        return copy.deepcopy(results[key])  # the script may change it

    for name in _READS:
        around(arrays, name, functools.partial(stale, name))


class _Donating:
    """Stands for a jitted function; donates arguments once they are results of earlier calls."""

    def __init__(self, jitted: Any, function: Any, options: dict[str, Any], change: Change) -> None:
        functools.update_wrapper(self, jitted)
        self.__wrapped__ = jitted.__wrapped__
        self._jitted = jitted
        self._function = function
        self._options = options
        self._change = change
        self._results: set[int] = set()
        self._kept: Any = None
        self._is_decided = False

    def __call__(self, /, *args: Any, **more: Any) -> Any:
        if not self._is_decided and self._results:
            self._decide(args)
        found = self._jitted(*args, **more)
        leaves = [] if self._is_decided else jax.tree_util.tree_leaves(found)
        if not any(isinstance(each, jax.core.Tracer) for each in leaves):
            self._kept = leaves  # else, an id may be used again
            self._results = {id(each) for each in leaves}
        return found

    def _decide(self, args: tuple[Any, ...]) -> None:
        """Donate the arguments all arrays of which the previous call has returned."""
        again = [at for at, each in enumerate(args) if self._were_returned(each)]
        if not again:
            return
        self._is_decided = True
        self._results.clear()
        self._kept = None
        donating = jax.jit(self._function, donate_argnums=tuple(again), **self._options)
        self._jitted.replaces(unwrapped(donating))
        name = getattr(self._function, "__name__", "a function")
        self._change.took(f"{name} donates arguments {', '.join(map(str, again))}")

    def _were_returned(self, argument: Any) -> bool:
        leaves = jax.tree_util.tree_leaves(argument)
        return bool(leaves) and all(id(each) in self._results for each in leaves)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jitted, name)

    def __get__(self, thing: Any, kind: Any = None) -> Any:
        return self if thing is None else MethodType(self, thing)


def _are_alike(one: Any, other: Any) -> bool:
    """Whether two functions with the same code are given the same values from outside."""
    pairs = zip(_from_outside(one), _from_outside(other))  # noqa: B905  (Python 3.8)
    return all(mine is its for mine, its in pairs)


def _from_outside(function: Any) -> list[Any]:
    """Return a function's defaults, and the values that it closes over."""
    named = function.__kwdefaults__ or {}
    cells = map(_content, function.__closure__ or ())
    return [*(function.__defaults__ or ()), *named.values(), *cells]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def _donates(given: dict[str, Any]) -> bool:
    return any(_is_set(given.get(name)) for name in ("donate_argnums", "donate_argnames"))


def _is_set(value: Any) -> bool:
    return value is not None and value is not False and "Unspecified" not in type(value).__name__


def _place_of_call(frame: FrameType, name: str, array: Any) -> Any:
    return frame.f_code, frame.f_lasti, name, array.shape if array.ndim else ()
