"""Switches of a whole process that are left on, and where the user's code turns them on."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..patch import around


class Switches:
    """Which switches are on in most steps.

    Args:
        observer: knows which code is the user's.
    """

    def __init__(self, observer: Any) -> None:
        self._observer = observer
        self._readers: dict[str, Callable[[], bool]] = {}
        self._on: Counter[str] = Counter()
        self._seen: set[str] = set()
        self._steps = 0
        self._places: dict[str, str] = {}

    def watch(self, name: str, is_on: Callable[[], bool]) -> None:
        """Read a switch in each step."""
        self._readers[name] = is_on

    def set_by(self, name: str, owner: Any, function: str) -> None:
        """Keep which line of the user's turns a switch on by a function."""

        def noted(real: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
            result = real(*args, **more)
            place = self._observer.users_place(sys._getframe(1))
            if place is not None and self._readers[name]():
                self._places[name] = place
            return result

        around(owner, function, noted)

    def may_be_set(self, name: str, frame: FrameType) -> None:
        """Keep that the user's line above a frame may turn a switch on."""
        place = self._observer.users_place(frame)
        if place is not None:
            self._places[name] = place

    def look(self) -> None:
        """Read the switches in the middle of a step: some are only on for a part of it."""
        self._seen.update(name for name, is_on in self._readers.items() if is_on())

    def stepped(self) -> None:
        """End a step."""
        self.look()
        self._steps += 1
        self._on.update(self._seen)
        self._seen.clear()

    def facts(self) -> dict[str, str]:
        """Return the switches that were on in most steps, each with its line; empty if unknown."""
        return {
            name: self._places.get(name, "")
            for name, steps in self._on.items()
            if 2 * steps > self._steps
        }
