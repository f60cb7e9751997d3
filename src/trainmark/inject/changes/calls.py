"""How often known functions are called in a training, for how long, and from which lines."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from ..observer import clock
from ..patch import around

_MOST_PLACES = 4
"""Most lines that are reported for a function."""


class Calls:
    """Counts calls since the first step.

    Args:
        observer: knows which code is the user's.
    """

    def __init__(self, observer: Any) -> None:
        self._observer = observer
        self._times: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._places: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._inside: set[str] = set()
        self._of_step: Counter[str] = Counter()
        self._in_steps: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self.counts = False

    def begin(self) -> None:
        """Count from now on."""
        self.counts = True

    def stepped(self) -> None:
        """End a step."""
        for what, times in self._of_step.items():
            self._in_steps[what][times] += 1
        self._of_step.clear()

    def count(
        self, what: str, owner: Any, name: str, is_compiling: Callable[[], bool] = bool
    ) -> None:
        """Count the calls of a function of a module or a class.

        Args:
            what: its name in the facts.
            owner: the module or class.
            name: its name there.
            is_compiling: tells that a compiler follows the call, which must see nothing of ours.
        """

        def counted(real: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
            if is_compiling():
                return real(*args, **more)
            if not self.counts or what in self._inside:
                return real(*args, **more)
            self._inside.add(what)
            began = clock()
            try:
                return real(*args, **more)
            finally:
                self._inside.discard(what)
                took = clock() - began
                self._times[what] += 1
                self._of_step[what] += 1
                self._seconds[what] += took
                place = self._observer.users_place(sys._getframe(1))
                if place is not None:
                    self._places[what][place] += round(1e9 * took)  # in nanoseconds

        around(owner, name, counted)

    def facts(self) -> dict[str, dict[str, Any]]:
        """Return ``times``, ``seconds`` and ``places``, those with the most time first.

        ``usual`` is the usual number of calls in a step that has any; 0 if none has ended.
        """
        return {
            what: {
                "times": times,
                "usual": max(self._in_steps[what], key=self._in_steps[what].__getitem__, default=0),
                "seconds": self._seconds[what],
                "places": [place for place, _ in self._places[what].most_common(_MOST_PLACES)],
            }
            for what, times in self._times.items()
        }
