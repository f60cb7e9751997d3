"""Replaces functions of a framework by ones that observe."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .observer import Observer, clock

_CHANGEABLE = 1 << 9
"""Flag of classes whose attributes can be set; classes written in C, such as the base of
``torch.Tensor``, lack it."""
_ALL_READS = 1_000
"""Number of reads after which only some are sampled, at uneven gaps."""
_GAPS = (5, 11, 8, 7, 7)
"""Reads that are skipped between two samples. With one more each, the gaps add up to a prime, so no
line of a loop is missed."""


def around(kind: Any, name: str, by: Callable[..., Any]) -> None:
    """Replace a function by one that is given the real one first.

    A method is replaced in the class that defines it.
    """
    kinds = [each for each in getattr(kind, "__mro__", ()) if each.__flags__ & _CHANGEABLE]
    owner = next((each for each in kinds if name in vars(each)), kind)
    real = getattr(owner, name)

    @functools.wraps(real)
    def replaced(*args: Any, **more: Any) -> Any:
        return by(real, *args, **more)

    put(owner, name, replaced)


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
    kind: Any, names: Iterable[str], observer: Observer, copies: Iterable[str] = ()
) -> None:
    """Time the methods that wait for a value, or copy one to another device.

    They are replaced by ones that report how long users wait.
    """
    for name in (*names, *copies):
        setattr(kind, name, _timed(getattr(kind, name), name, observer, copies))


def _timed(read: Any, name: str, observer: Observer, copies: Iterable[str]) -> Any:
    word = f"{name.strip('_')}()" if name.startswith("__") else f".{name}()"
    synchronised = observer.guarded(observer.synchronised)
    copied = observer.guarded(observer.copied)
    all_first = itertools.chain(itertools.repeat(0, _ALL_READS), itertools.cycle(_GAPS))
    gap = left = 0

    @functools.wraps(read, ("__name__", "__doc__"))
    def reads(self: Any, *args: Any, **more: Any) -> Any:
        nonlocal gap, left
        if left:
            left -= 1
            return read(self, *args, **more)
        if not observer.speaks:
            return read(self, *args, **more)
        times = gap + 1
        gap = next(all_first)
        left = gap
        frame = sys._getframe(1)
        if not observer.is_users(frame):
            return read(self, *args, **more)
        start = clock()
        found = read(self, *args, **more)
        if name not in copies or found.device.type == "cpu" != self.device.type:
            synchronised(word, clock() - start, frame, times)
        elif found.device != self.device:
            copied(clock() - start, times)
        return found

    reads._trainmark = True  # type: ignore[attr-defined]
    return reads


def time_saves(kind: Any, names: Iterable[str], observer: Observer) -> None:
    """Report how long functions that save files take."""
    saved = observer.guarded(observer.saved)

    def saves(real: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
        start = clock()
        found = real(*args, **more)
        saved(clock() - start, sys._getframe(2))
        return found

    for name in names:
        around(kind, name, saves)


def keep_places(kind: Any, observer: Observer) -> None:
    """Keep where things of this kind are made."""

    @observer.guarded
    def made(thing: Any, frame: Any) -> None:
        while (
            frame.f_back is not None
            and frame.f_code.co_name == "__init__"
            and frame.f_locals.get("self") is thing
        ):
            frame = frame.f_back
        observer.made(thing, frame)

    def initialised(real: Callable[..., None], thing: Any, /, *args: Any, **more: Any) -> None:
        real(thing, *args, **more)
        made(thing, sys._getframe(2))

    around(kind, "__init__", initialised)
