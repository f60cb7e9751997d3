"""When JAX compiles in the middle of a training, and at which line of the script."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..observer import Observer, clock
from ..places import users_place

_COMPILING = "/jax/core/compile/"
"""Start of the names of events that JAX reports when it has traced, lowered or compiled."""

_MOST_SPANS = 1_000
"""Most spans of time that may lie inside of a later one."""


class Compiles:
    """The time that JAX compiles, from the first step that was reported on.

    Args:
        current: returns the jitted function whose call goes on; None outside of all calls.
        is_step: whether a function is a step.

    Attributes:
        seconds: how long it took, without that of evaluations.
        of_step: how often a step was compiled.
        between: how long it took since the last step, without steps and evaluations.
        are_ours: whether trainmark itself compiles now.
    """

    def __init__(
        self,
        observer: Observer,
        current: Callable[[], Any],
        is_step: Callable[[Any], bool],
    ) -> None:
        self._observer = observer
        self._current = current
        self._is_step = is_step
        self._spans: list[tuple[float, float]] = []
        self._places: dict[str, float] = {}
        self.seconds = 0.0
        self.of_step = 0
        self.are_ours = False
        self._between: list[tuple[str, float]] = []
        self.between = 0.0

    def step_begins(self, *, has_evaluated: bool) -> None:
        """A step is about to be called; an evaluation before it has compiled for itself."""
        if not has_evaluated:
            for place, seconds in self._between:
                self._add(place, seconds)
        self._between.clear()
        self.between = 0.0

    def reported(self, event: str, seconds: float, **_: Any) -> None:
        """JAX reports an event, which took until now."""
        if not event.startswith(_COMPILING) or not self._observer.speaks:
            return
        if self.are_ours or self._observer.evaluates_since is not None:
            return
        now = clock()
        more = self._outermost(now - seconds, now)
        place = users_place(sys._getframe(1)) or ""
        if not self._is_step(self._current()):
            self._between.append((place, more))
            self.between += more
            return
        self._add(place, more)
        if "backend_compile" in event:
            self.of_step += 1

    def _add(self, place: str, seconds: float) -> None:
        self.seconds += seconds
        self._places[place] = self._places.get(place, 0.0) + seconds
        self._observer.places["compile"] = max(self._places, key=self._places.__getitem__)

    def _outermost(self, start: float, now: float) -> float:
        """Return the seconds of a span that spans before it, inside of it, do not have."""
        inner = 0.0
        while self._spans and self._spans[-1][0] >= start:
            began, ended = self._spans.pop()
            inner += ended - began
        self._spans.append((start, now))
        del self._spans[:-_MOST_SPANS]
        return max(now - start - inner, 0.0)
