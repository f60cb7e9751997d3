"""Jitted functions of the user's, whose calls are shown to what observes them."""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Generator
from types import MethodType
from typing import Any

from ..observer import Observer
from ..patch import Kind, inside, note, replace
from .calls import Arrays, Now


class Function:
    """A function of the user's, which may be compiled again and again."""


class Functions:
    """Follows the calls of jitted functions, except for those inside of others.

    Args:
        before: is shown a call before it begins.
        after: is shown a call and its result.
        computes_gradients: whether a function was seen to compute gradients.
    """

    def __init__(
        self,
        jax: Any,
        observer: Observer,
        before: Callable[..., None],
        after: Callable[..., None],
        computes_gradients: Callable[[Any], Any],
    ) -> None:
        self._jax = jax
        self._observer = observer
        self._arrays = Arrays(jax)
        self._inside = threading.local()
        self._thread = 0
        self._computes_gradients = computes_gradients
        self._known: dict[Any, tuple[Callable[[], Any], Function]] = {}
        self._made = observer.guarded(observer.places.made)
        self._before = observer.guarded(before)
        self._after = observer.guarded(after)

    @property
    def current(self) -> Any:
        """The function whose call goes on; None outside of all calls."""
        return getattr(self._inside, "function", None)

    @property
    def was_traced(self) -> bool:
        """Whether a jitted function was traced from outside, since :meth:`nothing_traced`."""
        return getattr(self._inside, "was_traced", False)

    def nothing_traced(self) -> None:
        """A gradient is about to be computed, perhaps of a jitted function."""
        self._inside.was_traced = False

    def follow_thread(self) -> None:
        """Observe this thread from now on."""
        self._thread = threading.get_ident()

    @property
    def is_followed(self) -> bool:
        """Whether this thread is observed."""
        return self._thread == threading.get_ident()

    @property
    def is_inside(self) -> bool:
        """Whether a call is a part of another one, or of a step that Keras reports."""
        return self.current is not None or self._observer.is_led

    def follow(self) -> None:
        """Wrap what ``jax.jit`` returns, and calls of what was compiled ahead of time."""
        library = os.path.dirname(self._jax.__file__) + os.sep

        def jit(found: Any) -> Any:
            if caller_of(sys._getframe(2)).f_code.co_filename.startswith(library):
                return found
            if hasattr(found, "lower"):
                return self._wrapped(found)

            def decorate(function: Any) -> Any:
                return self._wrapped(found(function))

            return decorate

        def calls(arguments: dict[str, Any]) -> Generator[None, Any, None]:
            if self.is_inside:
                return
            now = self._begins(arguments["self"], arguments["args"], arguments["kwargs"])
            try:
                found = yield
            finally:
                self._inside.function = None
            self._ended(now, found)

        replace(self._jax, "jit", jit)
        note(self._jax.stages, "Wrapped", Kind.STAND_IN)
        inside(self._jax.stages.Compiled, "__call__", calls, self._observer)

    def _wrapped(self, jitted: Any) -> Any:
        function = Function()
        self._made(function, sys._getframe(1))
        return _Jitted(jitted, self._call, function)

    def _known_as(self, stand_in: _Jitted, jitted: Any, function: Function) -> Function:
        """Return the function that a jitted one is, when it is first called.

        A loop may define and jit the same one in each turn. Two that exist at the same time are
        different ones, such as those of a factory.
        """
        code = getattr(jitted.__wrapped__, "__code__", None)
        if code is None:
            return function
        earlier, known = self._known.get(code, (_nothing, function))
        if earlier() is None:
            function = known
        self._known[code] = weakref.ref(stand_in), function
        return function

    def _call(self, stand_in: _Jitted, jitted: Any, args: Any, more: Any) -> Any:
        if self.is_inside:
            return jitted(*args, **more)
        function = stand_in.trainmark_function(self._known_as)
        now = self._begins(function, args, more)
        try:
            found = jitted(*args, **more)
        finally:
            self._inside.function = None
        self._ended(now, found)
        return found

    def _begins(self, function: Any, args: Any, more: Any) -> Now | None:
        """A call is about to begin; return what is kept of it, None if JAX traces it."""
        self._inside.function = function
        try:
            leaves = self._jax.tree_util.tree_leaves((args, more))
        except Exception:  # noqa: BLE001  (the call raises it, too)
            return None
        if self._arrays.has_tracers(leaves):
            self._inside.was_traced = True
            return None
        now = Now(function, self._arrays.only(leaves))
        if self._is_of_thread(function):
            self._before(now)
        return now

    def _ended(self, now: Now | None, found: Any) -> None:
        """A call has ended; its first one has shown whether it computes gradients."""
        if now is not None and self._is_of_thread(now.function):
            self._after(now, found)

    def _is_of_thread(self, function: Any) -> bool:
        """Whether this thread is observed.

        It is the one that was the last to call a function which computes gradients. Before there is
        such a function, it is the one that calls a function first.
        """
        if not self._thread or self._computes_gradients(function):
            self.follow_thread()
        return self.is_followed


class _Jitted:
    """Stands for a jitted function, and shows its calls; everything else is that function's.

    Jitted functions are written in C, which neither tells of their calls nor can be derived from.
    """

    def __init__(self, jitted: Any, call: Callable[..., Any], function: Function) -> None:
        functools.update_wrapper(self, jitted)
        self.__wrapped__ = jitted.__wrapped__
        self._jitted = jitted
        self._calls = call
        self._function = function
        self._was_called = False

    def __call__(self, /, *args: Any, **more: Any) -> Any:
        return self._calls(self, self._jitted, args, more)

    def trainmark_function(self, known_as: Callable[..., Function]) -> Function:
        """Return which function it is."""
        if not self._was_called:
            self._was_called = True
            self._function = known_as(self, self._jitted, self._function)
        return self._function

    def replaces(self, jitted: Any) -> None:
        """Call another jitted function from now on, for an experiment."""
        self._jitted = jitted

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._jitted)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jitted, name)

    def __get__(self, thing: Any, kind: Any = None) -> Any:
        return self if thing is None else MethodType(self, thing)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._jitted.__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return repr(self._jitted)

    def __eq__(self, other: Any) -> bool:
        return bool(self._jitted == getattr(other, "_jitted", other))

    def __hash__(self) -> int:
        return hash(self._jitted)


def _nothing() -> Any:
    return None


def unwrapped(jitted: Any) -> Any:
    """Return the jitted function that is observed."""
    return jitted._jitted if isinstance(jitted, _Jitted) else jitted


def caller_of(frame: Any) -> Any:
    """Return the frame that called the function of a frame, beyond JAX's filter of tracebacks."""
    while frame.f_back.f_code.co_filename.endswith("traceback_util.py"):
        frame = frame.f_back
    return frame.f_back
