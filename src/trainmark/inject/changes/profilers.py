"""Python's own profilers: whether one is on, where it was turned on, and keeping it off."""

from __future__ import annotations

import cProfile
import profile
import sys
from collections.abc import Callable
from typing import Any

from ..patch import put
from . import Change
from .switches import Switches

_monitoring: Any = getattr(sys, "monitoring", None)
"""How profilers are called since Python 3.12."""


def is_profiled() -> bool:
    """Whether a profiler is called for every function."""
    if _monitoring is not None and _monitoring.get_tool(_monitoring.PROFILER_ID):
        return True
    return sys.getprofile() is not None


def watch(switches: Switches) -> None:
    """Watch whether a profiler is on, and keep where it was turned on."""
    switches.watch("Python profiler", is_profiled)
    for owner, name in _beginnings():
        real = getattr(owner, name)
        put(owner, name, _noting(real, switches))


def keep_off(change: Change) -> None:
    """Keep Python's profilers off."""
    if is_profiled():
        change.took("Python's profiler is turned off")
        sys.setprofile(None)
        if _monitoring is not None and _monitoring.get_tool(_monitoring.PROFILER_ID):
            _monitoring.set_events(_monitoring.PROFILER_ID, 0)

    def never(*given: Any, **_: Any) -> None:
        if given != (None,):  # sys.setprofile(None) turns it off
            change.took("Python's profiler stays off")

    put(cProfile.Profile, "enable", never)
    put(cProfile.Profile, "disable", _nothing)
    put(sys, "setprofile", never)


def _nothing(*_: Any) -> None:
    """Do nothing."""


def _beginnings() -> list[tuple[Any, str]]:
    """Return what turns a profiler on: a class and its method."""
    return [(cProfile.Profile, "enable"), (profile.Profile, "runctx"), (profile.Profile, "runcall")]


def _noting(real: Callable[..., Any], switches: Switches) -> Callable[..., Any]:
    """Return a method that first keeps which line calls it."""

    def noted(*args: Any, **more: Any) -> Any:
        switches.may_be_set("Python profiler", sys._getframe(1))
        return real(*args, **more)

    return noted
