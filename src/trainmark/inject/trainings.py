"""Which optimiser's steps count, and where another training begins.

A script may step several optimisers in turn, as for a GAN, where only the first one's steps count.
It may also train several networks one after the other, as in cross-validation, where all of them
do. The difference shows only later, so the steps of other optimisers wait until then.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from .amounts import Since

_NEW_LEADER = 20
"""Number of steps of other optimisers in a row after which the first of them leads."""
_MOST_GAPS = 2
"""How often as many steps as usual must be without one of the leader at the end of a script, so
that others count, too."""
_MOST_WEIGHTS = 100
"""Number of weights of a training by which it is recognised."""


class Step(NamedTuple):
    """A step of an optimiser that does not lead, with the sums so far.

    Args:
        optimizer: the optimiser.
        ended: when it ended.
        loss: its loss.
        steps: number of steps, if the framework takes several at once.
        examples: number of its examples, if the framework knows it.
        sums: what the observer has added up since the leader's last step.
    """

    optimizer: Any
    ended: float
    loss: Any
    steps: int
    examples: int | None
    sums: Since


class Trainings:
    """The trainings of a process, one after the other.

    Attributes:
        leader: returns the optimiser whose steps count; None before the first step.
        starts: number of steps before each training. One that changes weights of an earlier one
            continues it.
        weights_of: for each framework, returns the weights of an optimiser.
    """

    def __init__(self) -> None:
        self.leader: Callable[[], Any] = _nothing
        self.starts = [0]
        self.weights_of: dict[str, Callable[[Any], list[Any]]] = {}
        self._weights: list[Callable[[], Any]] = []
        self._waiting: list[Step] = []
        self._longest_wait = 0

    def leads(self, optimizer: object) -> bool:
        """Whether an optimiser leads; if so, those that wait were steps between its own."""
        if self.leader() is not optimizer:
            return False
        if self._waiting:
            self._longest_wait = max(self._longest_wait, len(self._waiting))
            self._waiting.clear()
        return True

    def waits(self, step: Step) -> bool:
        """Keep a step of another optimiser; return whether the first that waits must now lead."""
        self._waiting.append(step)
        most = max(_NEW_LEADER, _MOST_GAPS * self._longest_wait)
        return self.leader() is None or len(self._waiting) >= most

    def end(self) -> bool:
        """Whether the optimisers that wait at the end of the script have trained on their own."""
        return len(self._waiting) > _MOST_GAPS * self._longest_wait + 1

    def next_leader(self, steps: int, framework: str) -> tuple[Any, list[Step]]:
        """Let the first optimiser that waits lead.

        Args:
            steps: number of steps so far.
            framework: of the optimiser.

        Returns:
            The optimiser and its steps that count now. Other optimisers' steps still wait.
        """
        first = self._waiting[0].optimizer
        counted = [each for each in self._waiting if each.optimizer is first]
        last = max(at for at, each in enumerate(self._waiting) if each.optimizer is first)
        left = self._waiting[last + 1 :]
        # Their sums are since the leader's last step, which is now another one.
        self._waiting = [each._replace(sums=each.sums.without(counted[-1].sums)) for each in left]
        self._longest_wait = 0
        find = self.weights_of.get(framework)
        weights = [] if find is None else find(first)
        known = [reference() for reference in self._weights]
        known = [weight for weight in known if weight is not None]
        if steps and not any(each is weight for each in known for weight in weights):
            self.starts.append(steps)
        self._weights = list(map(_weakly, [*known, *weights[:_MOST_WEIGHTS]]))
        self.leader = _weakly(first)
        return first, counted


def _nothing() -> Any:
    return None


def _weakly(thing: Any) -> Callable[[], Any]:
    """Return a weak reference, or what keeps the thing if it can't have any."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing
