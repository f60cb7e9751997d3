"""Observes functions of a framework, so that scripts can't tell the difference.

:data:`PATCHES` lists every patch with its kind. The values of :class:`Kind` say why none shifts a
frame, or loses a signature, an attribute, a pickle or an identity;
``tests/unit/inject/test_patches.py`` checks this for each of them.
"""

from __future__ import annotations

import functools
import itertools
import opcode
import sys
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from types import FunctionType
from typing import Any, NamedTuple

from .inside import Observes, observe_inside, replace_result
from .observer import Observer, clock

_CHANGEABLE = 1 << 9
"""Flag of classes whose attributes can be set; classes written in C, such as the base of
``torch.Tensor``, lack it."""
_ALL_READS = 1_000
"""Number of reads after which only some are sampled, at uneven gaps."""
_GAPS = (5, 11, 8, 7, 7)
"""Reads that are skipped between two samples. With one more each, the gaps add up to a prime, so no
line of a loop is missed."""


class Kind:
    """How something is observed, and why the script can't tell."""

    HOOK = "a hook of the framework: the framework calls it, and it has returned before it goes on"
    INSIDE = (
        "calls of ours in the function's own code: it stays the same object, and they have "
        "returned before it goes on"
    )
    HOOKS = (
        "the empty dictionary of a module's hooks, which each call asks whether it is empty; "
        "it is, is saved and copied as one, and adds no frame, not even of PyTorch"
    )
    LOOK_UP = (
        "a descriptor in place of a method written in C: it returns that method itself, and the "
        "end of the call is the end of the bound method"
    )
    COPY = (
        "as a look-up, but a sampled call of the method returns a Python function that calls it; "
        "code in C can't look at its caller"
    )
    STAND_IN = (
        "an object that is the function in everything but its type, for the result of a function; "
        "its frame lies outside of the framework's own, which filters it with them"
    )
    SAME_NAME = (
        "a function of the same name, signature and pickle, for a function written in C, which "
        "can't look at its caller"
    )


class Patch(NamedTuple):
    """One patch: ``module:name`` of what is patched, and its :class:`Kind`."""

    what: str
    kind: str


PATCHES: list[Patch] = []
"""What was patched in this process."""


def note(owner: Any, name: str, kind: str) -> None:
    """Keep a patch of an attribute of a module or a class in :data:`PATCHES`."""
    if isinstance(owner, type):
        what = f"{owner.__module__}:{owner.__qualname__}.{name}"
    else:
        what = f"{owner.__name__}:{name}"
    PATCHES.append(Patch(what, kind))


def inside(kind: Any, name: str, observes: Observes, observer: Observer) -> None:
    """Observe a function of a module or a class, which is written in Python, from inside."""
    owner = _owner(kind, name)
    observe_inside(vars(owner)[name], observer.observing(observes), observer.failed)
    note(owner, name, Kind.INSIDE)


def replace(kind: Any, name: str, by: Callable[[Any], Any]) -> None:
    """Replace what a function of a module or a class returns."""
    owner = _owner(kind, name)
    replace_result(vars(owner)[name], by)
    note(owner, name, Kind.INSIDE)


def around(
    kind: Any, name: str, by: Callable[..., Any], is_on: Callable[[], bool] | None = None
) -> None:
    """Replace a function by one that is given the real one first.

    A method is replaced in the class that defines it. This is for experiments, which change what a
    training does; what is only observed uses :func:`inside`.

    Args:
        is_on: whether a call is replaced; each is by default.
    """
    owner = _owner(kind, name)
    real = getattr(owner, name)

    @functools.wraps(real)
    def replaced(*args: Any, **more: Any) -> Any:
        if is_on is not None and not is_on():
            return real(*args, **more)
        return by(real, *args, **more)

    put(owner, name, replaced)


def _owner(kind: Any, name: str) -> Any:
    """Return what defines ``name``: a module, or a class that a class is derived from."""
    kinds = [each for each in getattr(kind, "__mro__", ()) if each.__flags__ & _CHANGEABLE]
    return next((each for each in kinds if name in vars(each)), kind)


put = setattr
"""Replaces something of a framework; tests undo what it did."""


def length_of(value: Any) -> int | None:
    """Return a length; None for data without one, such as an iterable dataset."""
    try:
        return len(value)
    except Exception:  # noqa: BLE001  (the method is the user's)
        return None


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what nested sequences and mappings hold, with its name."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from leaves(each, str(key))
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from leaves(each, name)
    else:
        yield name, value


def time_reads(
    kind: Any,
    names: Iterable[str],
    observer: Observer,
    copies: Iterable[str] = (),
    synchronised: Callable[..., None] | None = None,
) -> None:
    """Time the methods that wait for a value, or copy one to another device.

    Args:
        kind: the class of the arrays.
        names: methods that wait.
        copies: methods that copy; they wait if the copy is on the host.
        synchronised: is called at each read; by default, that is the observer's method.
    """
    for name in names:
        reads = _Reads(name, observer, synchronised or observer.synchronised)
        if isinstance(getattr(kind, name), FunctionType):
            inside(kind, name, reads.inside, observer)
        else:
            put(kind, name, _LookedUp(getattr(kind, name), reads))
            note(kind, name, Kind.LOOK_UP)
    for name in copies:
        put(kind, name, _LookedUp(getattr(kind, name), _Copies(name, observer)))
        note(kind, name, Kind.COPY)


def give_back(kind: Any, names: Iterable[str]) -> None:
    """Undo what :func:`time_reads` did to methods that are written in C."""
    for name in names:
        if isinstance(vars(kind).get(name), _LookedUp):
            delattr(kind, name)


class _Sampled:
    """Takes all of the first calls of a method, and then only some, at uneven gaps."""

    def __init__(self, name: str, observer: Observer) -> None:
        self._is_special = name.startswith("__")
        self.word = f"{name.strip('_')}()" if self._is_special else f".{name}()"
        self.observer = observer
        self._all_first = itertools.chain(itertools.repeat(0, _ALL_READS), itertools.cycle(_GAPS))
        self._gap = 0
        self._left = 0

    def stands_for(self, frame: Any) -> int:
        """Return the number of calls that this one by ``frame`` stands for; 0 if it is left out."""
        if self._left:
            self._left -= 1
            return 0
        if not self.observer.speaks:
            return 0
        times = self._gap + 1
        self._gap = next(self._all_first)
        self._left = self._gap
        return times if self.observer.is_users(frame) else 0

    def is_called(self, frame: Any) -> bool:
        """Whether ``frame`` has looked the method up to call it, not by ``hasattr``."""
        if self._is_special:
            return True
        name: str = opcode.opname[frame.f_code.co_code[frame.f_lasti]]
        return name.startswith("LOAD_")


class _Reads(_Sampled):
    """Reports how long users wait in a method of an array."""

    def __init__(self, name: str, observer: Observer, synchronised: Callable[..., None]) -> None:
        super().__init__(name, observer)
        self._synchronised = observer.guarded(synchronised)
        self._running: set[Any] = set()

    def inside(self, _: Any) -> Generator[None, Any, None]:
        """Observe a method that is written in Python."""
        frame = sys._getframe(3)
        times = self.stands_for(frame)
        if times:
            start = clock()
            yield
            self._synchronised(self.word, clock() - start, frame, times)

    def looked_up(self, _: Any, method: Any, frame: Any) -> Any:
        """Return the method to call; it is over as soon as Python drops it, after the call."""
        if not self.is_called(frame):
            return method
        times = self.stands_for(frame)
        if not times:
            return method
        start = clock()

        def ended(running: Any) -> None:
            self._running.discard(running)
            self._synchronised(self.word, clock() - start, frame, times)

        try:
            running = weakref.ref(method, ended)
        except TypeError:  # some frameworks' methods can't be referred to
            method = functools.partial(method)
            running = weakref.ref(method, ended)
        self._running.add(running)
        return method


class _Copies(_Sampled):
    """Reports how long copies to another device take; those to the host wait for the result."""

    def __init__(self, name: str, observer: Observer) -> None:
        super().__init__(name, observer)
        self._synchronised = observer.guarded(observer.synchronised)
        self._copied = observer.guarded(observer.copied)

    def looked_up(self, array: Any, method: Any, frame: Any) -> Any:
        """Return the method to call; if it is sampled, one that also sees the result."""
        if not self.is_called(frame):
            return method
        times = self.stands_for(frame)
        if not times:
            return method

        @functools.wraps(method)
        def copies(*args: Any, **more: Any) -> Any:
            start = clock()
            found = method(*args, **more)
            seconds = clock() - start
            if found.device.type == "cpu" != array.device.type:
                self._synchronised(self.word, seconds, frame, times)
            elif found.device != array.device:
                self._copied(seconds, times)
            return found

        return copies


class _LookedUp:
    """Replaces a method of a class that is written in C, and returns that method."""

    def __init__(self, real: Any, look: _Reads | _Copies) -> None:
        self.__wrapped__ = real
        self._look = look

    def __get__(self, thing: Any, kind: Any = None) -> Any:
        if thing is None:
            return self.__wrapped__
        method = self.__wrapped__.__get__(thing, kind)
        return self._look.looked_up(thing, method, sys._getframe(1))


def time_saves(kind: Any, names: Iterable[str], observer: Observer) -> None:
    """Report how long functions that save files take."""
    saved = observer.guarded(observer.saved)

    def saves(_: Any) -> Generator[None, Any, None]:
        start = clock()
        yield
        saved(clock() - start, sys._getframe(1))

    for name in names:
        inside(kind, name, saves, observer)


def keep_places(kind: Any, observer: Observer) -> None:
    """Keep where things of this kind are made."""

    def made(arguments: dict[str, Any]) -> Generator[None, Any, None]:
        yield
        thing = arguments["self"]
        frame = sys._getframe(2)
        while (
            frame.f_back is not None
            and frame.f_code.co_name == "__init__"
            and frame.f_locals.get("self") is thing
        ):
            frame = frame.f_back
        observer.places.made(thing, frame)

    inside(kind, "__init__", made, observer)
