"""Where another training begins, if several share one step of JAX."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ..observer import Observer
from .calls import Call, nothing
from .weights import begins_anew, copied, is_readable

_FEWEST_STEPS = 3
"""Fewest steps of a training. A line search, for example, makes one step from the same weights
several times."""
_MOST_COPIES = 8
"""Number of times that weights may be copied between steps; after that we no longer look."""
_MOST_KEPT = 8
"""Most arrays by which a training is recognised, the largest ones."""
_MOST_KNOWN = 1_000
"""Number of earlier results after which those that no longer exist are forgotten."""


class Trials:
    """The trainings of one step, which are one after the other.

    Where several networks take turns, or where weights are mixed outside of the step, we can't
    know, and say that it is one training.

    Args:
        step: refers to the step.
        first: the arrays that the first step was given, by their positions, as NumPy's.
        feeds: for each position of an argument, that of the result which is fed back there.
        calls: the calls of the step so far.
    """

    def __init__(
        self,
        observer: Observer,
        step: Callable[[], Any],
        first: dict[int, Any],
        feeds: dict[int, int],
        calls: list[Call],
    ) -> None:
        self._observer = observer
        self._step = step
        positions = [at for at in first if at in feeds]
        positions.sort(key=lambda at: -first[at].size)
        positions = positions[:_MOST_KEPT]
        self._positions = positions
        self._results = [feeds[at] for at in positions]
        self._most_position = max(positions, default=0)
        self._most_result = max(self._results, default=0)
        self._first = [first[at] for at in positions]
        self._last: list[Any] = []
        self._known: dict[int, tuple[Callable[[], Any], int]] = {}
        self._number = 0
        self._steps = len(calls)
        self._copies = 0
        self._starts: list[int] = []
        self._is_sure = bool(positions)
        for call in calls if positions else ():
            array = call.result(self._results[0])
            if array is not None:
                self._keep(array)

    def before(self, given: list[Any]) -> None:
        """The step is about to be called."""
        if not self._is_sure or not self._last or self._most_position >= len(given):
            return
        array = given[self._positions[0]]
        if array is self._last[0]:
            return
        found, number = self._known.get(id(array), (nothing, 0))
        if found() is array:
            if number != self._number:
                self._give_up()  # several networks take turns
            return
        self._look_closely([given[at] for at in self._positions])

    def after(self, returned: list[Any]) -> None:
        """The step was called."""
        if not self._is_sure or self._most_result >= len(returned):
            return
        self._steps += 1
        self._last = [returned[at] for at in self._results]
        self._keep(self._last[0])

    def _look_closely(self, given: list[Any]) -> None:
        """Compare weights that the step has not returned with those that it has."""
        arrays = [*given, *self._last]
        if not all(map(is_readable, arrays)):
            self._give_up()
            return
        now = [copied(each) for each in given]
        if not begins_anew(self._first, [copied(each) for each in self._last], now):
            self._copies += 1
            if self._copies >= _MOST_COPIES or self._starts:
                self._give_up()
            return
        if self._steps < _FEWEST_STEPS:
            self._give_up()
            return
        self._number += 1
        self._steps = 0
        self._first = now
        trainings = self._observer.trainings
        if trainings.leads(self._step()):
            self._starts.append(self._observer.steps)
            trainings.starts.append(self._observer.steps)

    def _keep(self, array: Any) -> None:
        if len(self._known) >= _MOST_KNOWN:
            alive = {key: each for key, each in self._known.items() if each[0]() is not None}
            # If all of them are kept, nothing more is learnt from the oldest.
            self._known = alive if len(alive) < _MOST_KNOWN // 2 else {}
        self._known[id(array)] = (weakref.ref(array), self._number)

    def _give_up(self) -> None:
        """Take back what was said: it is not sure where trainings begin."""
        self._is_sure = False
        starts = self._observer.trainings.starts
        starts[:] = [each for each in starts if each not in self._starts]
        self._last = []
