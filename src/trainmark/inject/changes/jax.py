"""Changes to a training with JAX, and facts about it."""

from __future__ import annotations

import copy
import functools
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from types import FrameType, FunctionType, MethodType
from typing import Any

import jax

from ..jax.calls import weakly
from ..jax.functions import caller_of, unwrapped
from ..jax.outside import are_same, from_outside, is_constant
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
"""Options of the script's own call of ``jax.jit``, which are passed on when the function is jitted
again with donation."""

_DONATED = "donate_argnums", "donate_argnames"
"""Options that donate arguments."""


def facts(change: Change) -> None:
    """Report the user's lines that take the most time, from the first step on.

    ``jits`` says how often each line of the script called ``jax.jit`` on a new function with code
    that was jitted before, after the first step.
    """
    observer = change.observer
    every = facts_of(observer)
    switches = every.switches
    switches.watch("disable_jit", lambda: bool(jax.config.jax_disable_jit))
    switches.watch("debug_nans", lambda: bool(jax.config.jax_debug_nans))
    jits: Counter[str] = Counter()
    known: dict[Any, Any] = {}

    def stepped(real: Any, /, *args: Any, **more: Any) -> None:
        real(*args, **more)
        every.begin(kept=_KEPT)
        switches.stepped()

    def jitted(found: Any, frame: FrameType) -> Any:
        caller = caller_of(frame)
        function = getattr(found, "__wrapped__", None)
        if not isinstance(function, FunctionType) or not observer.is_users(caller):
            return found
        # JAX knows a function again, but not another one with the same code.
        functions = known.setdefault(function.__code__, weakref.WeakSet())
        is_another = functions and function not in functions
        functions.add(function)
        if is_another and observer.steps:
            jits[observer.users_place(caller)] += 1
            every.found["jits"] = dict(jits.most_common(_MOST_PLACES))
        return found

    around(observer, "stepped", stepped)
    _replace_jit(change, jitted)


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
            change.took(f"the script's {name} = True is ignored")
        else:
            real(option, value)

    if getattr(jax.config, name):
        change.took(f"{name} is turned off")
        jax.config.update(name, False)
    around(jax.config, "update", updated)


def jit_once(change: Change) -> None:
    """Jit functions with the same code once, so that they are compiled once."""
    observer = change.observer
    made: dict[Any, tuple[Any, list[Any]]] = {}

    def jitted(found: Any, frame: FrameType) -> Any:
        caller = caller_of(frame)
        function: Any = getattr(found, "__wrapped__", None)
        if not isinstance(function, FunctionType) or not observer.is_users(caller):
            return found
        name = function.__name__
        key = function.__code__, caller.f_code, caller.f_lasti
        options = [frame.f_locals.get(option) for option in (*_OPTIONS, *_DONATED)]
        outside = [*options, *from_outside(function)]
        earlier, before = made.get(key, (None, []))
        if not all(map(is_constant, outside)):
            change.keeps(
                lambda: f"{name} uses values that may have changed each time it is created"
            )
            return found
        made[key] = found, outside
        if earlier is None:
            return found
        if not are_same(before, outside):
            change.keeps(lambda: f"{name} uses other values from outside each time it is created")
            return found
        made[key] = earlier, outside
        change.took(f"{name} at {observer.users_place(caller)} is jitted once")
        return earlier

    _replace_jit(change, jitted)


def donate(change: Change) -> None:
    """Let steps write their results to the arrays that they are given."""
    observer = change.observer

    def jitted(found: Any, frame: FrameType) -> Any:
        given = frame.f_locals
        is_users = observer.is_users(caller_of(frame))
        if not is_users or not hasattr(found, "lower") or _donates(given):
            return found
        options = {name: given[name] for name in _OPTIONS if _is_set(given.get(name))}
        return _Donating(found, given["fun"], options, change)

    _replace_jit(change, jitted)


def no_sync(change: Change) -> None:
    """Where the script only reports a result, return what was read there first."""
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
            # Python may specialise a call, which moves it to another instruction of the same line.
            stale_places[change.observer.users_place(frame)] = None
            change.proves(OLD_VALUES_AT + "; ".join(list(stale_places)[:_MOST_PLACES]))
        return copy.deepcopy(results[key])  # the script may change it

    for name in _READS:
        around(arrays, name, functools.partial(stale, name))


class _Donating:
    """Wraps a jitted function. What the previous call has returned is donated from then on."""

    def __init__(self, jitted: Any, function: Any, options: dict[str, Any], change: Change) -> None:
        functools.update_wrapper(self, jitted)
        self.__wrapped__ = jitted.__wrapped__
        self._jitted = jitted
        self._function = function
        self._options = options
        self._change = change
        self._results: list[Callable[[], Any]] = []
        self._is_decided = False

    def __call__(self, /, *args: Any, **more: Any) -> Any:
        if not self._is_decided and self._results:
            self._decide(args)
        found = self._jitted(*args, **more)
        leaves = [] if self._is_decided else jax.tree_util.tree_leaves(found)
        if not any(isinstance(each, jax.core.Tracer) for each in leaves):
            self._results = [weakly(each) for each in leaves]
        return found

    def _decide(self, args: tuple[Any, ...]) -> None:
        """Donate the arguments all arrays of which the previous call has returned."""
        again = [at for at, each in enumerate(args) if self._were_returned(each)]
        if not again:
            return
        self._is_decided = True
        self._results.clear()
        donating = jax.jit(self._function, donate_argnums=tuple(again), **self._options)
        self._jitted.replaces(unwrapped(donating))
        name = getattr(self._function, "__name__", "a function")
        numbers = " and ".join(map(str, again))
        self._change.took(f"{name} donates argument{'s' if len(again) > 1 else ''} {numbers}")

    def _were_returned(self, argument: Any) -> bool:
        leaves = jax.tree_util.tree_leaves(argument)
        returned = {
            id(result) for result in (each() for each in self._results) if result is not None
        }
        return bool(leaves) and all(id(each) in returned for each in leaves)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jitted, name)

    def __get__(self, thing: Any, kind: Any = None) -> Any:
        return self if thing is None else MethodType(self, thing)


def _replace_jit(change: Change, by: Callable[[Any, FrameType], Any]) -> None:
    """Replace what ``jax.jit`` returns; an error of ours is reported, and the result kept.

    Args:
        change: the change that does it.
        by: is given the result, and the frame of ``jax.jit``.
    """

    def replaced(found: Any) -> Any:
        try:
            return by(found, sys._getframe(2))
        except Exception as error:  # noqa: BLE001  (the user's script must go on)
            change.cannot(f"{type(error).__name__}: {error}"[:200])
            return found

    replace(jax, "jit", replaced)


def _donates(given: dict[str, Any]) -> bool:
    return any(_is_set(given.get(name)) for name in _DONATED)


def _is_set(value: Any) -> bool:
    return value is not None and value is not False and "Unspecified" not in type(value).__name__


def _place_of_call(frame: FrameType, name: str, array: Any) -> Any:
    return frame.f_code, frame.f_lasti, name, array.shape if array.ndim else ()
