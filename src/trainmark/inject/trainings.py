"""Which optimiser's steps count, and where another training begins.

A script may step several optimisers in turn, as for a GAN, where only the first one's steps count.
It may also train several networks one after the other, as in cross-validation, where all of them
do. The difference shows only later, so the steps of other optimisers wait until then.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from .amounts import Since
from .sources import Numbers

_NEW_LEADER = 20
"""Number of steps of other optimisers in a row after which the first of them leads."""
_MOST_GAPS = 2
"""How often as many steps as usual must be without one of the leader at the end of a script, so
that others count, too."""
_MOST_WEIGHTS = 100
"""Number of weights of a training by which it is recognised."""


class Step(NamedTuple):
    """A step of an optimiser.

    Args:
        optimizer: number of the optimiser.
        ended: when it ended.
        seconds: its duration; 0 if it is unknown.
        framework: the optimiser's framework.
        loss: its loss.
        steps: number of steps, if the framework takes several at once.
        examples: number of its examples, if the framework knows it.
        since: what was added up since the previous step of any optimiser.
    """

    optimizer: int
    ended: float
    seconds: float
    framework: str
    loss: Any
    steps: int
    examples: int | None
    since: Since


class Trainings:
    """The trainings of a process, one after the other.

    Attributes:
        leader: returns the optimiser whose steps count; None before the first step.
        starts: number of steps before each training. One that changes weights of an earlier one
            continues it.
        alternations: number of steps of the leader before which others have stepped, each on
            another loss.
        frameworks: how many steps each framework has made, in the order of their first ones.
        weights_of: for each framework, returns the weights of an optimiser.
    """

    def __init__(self) -> None:
        self.leader: Callable[[], Any] = _nothing
        self.starts = [0]
        self.alternations = 0
        self.frameworks: Counter[str] = Counter()
        self.weights_of: dict[str, Callable[[Any], list[Any]]] = {}
        self._numbers = Numbers()
        self._weights: dict[int, Callable[[], Any]] = {}
        self._led: set[int] = set()
        self._waiting: list[Step] = []
        self._longest_wait = 0

    def number_of(self, optimizer: object) -> int:
        """Return the number of an optimiser."""
        return self._numbers.number_of(optimizer)

    def leads(self, optimizer: object) -> bool:
        """Whether the steps of an optimiser count."""
        return self.leader() is optimizer

    def between(self) -> Since:
        """Return what was added up by the steps that wait, which the leader's step includes."""
        self._longest_wait = max(self._longest_wait, len(self._waiting))
        since = _sum(self._waiting)
        # Optimisers of parts of one network share a loss, which the first of their steps has.
        if any(step.loss is not None for step in self._waiting):
            self.alternations += 1
        self._waiting.clear()
        return since

    def waits(self, step: Step) -> bool:
        """Keep a step of another optimiser; return whether the first that waits must now lead."""
        is_lost = self.leader() is None
        if is_lost and len(self._waiting) <= self._longest_wait:
            self._waiting.clear()  # these belong to the last step of the leader
        self._waiting.append(step)
        return is_lost or len(self._waiting) >= max(_NEW_LEADER, _MOST_GAPS * self._longest_wait)

    def end(self) -> bool:
        """Whether the optimisers that wait at the end of the script have trained on their own."""
        return len(self._waiting) > _MOST_GAPS * self._longest_wait + 1

    def next_leader(self, steps: int, framework: str) -> tuple[Any, list[Step]]:
        """Let the first optimiser that waits lead.

        Args:
            steps: number of steps so far.
            framework: of the optimiser.

        Returns:
            The optimiser, or None if it does not exist any more, and its steps, which count now.
            They include those of others between them; later ones still wait.
        """
        number = self._waiting[0].optimizer
        counted: list[Step] = []
        others: list[Step] = []
        for step in self._waiting:
            others.append(step)
            if step.optimizer == number:
                counted.append(step._replace(since=_sum(others)))
                others = []
        self._waiting = others
        self._longest_wait = 0
        optimizer = self._numbers.get(number)
        find = self.weights_of.get(framework)
        weights = [] if find is None or optimizer is None else find(optimizer)
        # An optimiser that has led may be gone at the end of the script.
        goes_on = number in self._led or any(self._is_known(weight) for weight in weights)
        if steps and not goes_on:
            self.starts.append(steps)
        self._led.add(number)
        alive = {key: found for key, found in self._weights.items() if found() is not None}
        self._weights = {**alive, **{id(each): _weakly(each) for each in weights[:_MOST_WEIGHTS]}}
        self.leader = _nothing if optimizer is None else _weakly(optimizer)
        return optimizer, counted

    def _is_known(self, weight: object) -> bool:
        return self._weights.get(id(weight), _nothing)() is weight


def _sum(steps: list[Step]) -> Since:
    total = Since()
    for step in steps:
        total = total.and_then(step.since)
    return total


def _nothing() -> Any:
    return None


def _weakly(thing: Any) -> Callable[[], Any]:
    """Return a weak reference, or what keeps the thing if it can't have any."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing
