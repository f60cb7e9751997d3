"""How much work of steps is queued.

JAX returns from a step before it is computed. An evaluation, or the end of the script, then waits
for all steps that are queued, and nothing shows how much of that time is theirs.
"""

from __future__ import annotations

import math
from typing import Any

from ..observer import clock

_PROBES = 5
"""Number of steps that are waited for, to learn how long one takes."""
_WAIT = 0.2
"""Share of the time of a step from which on a read has waited for steps."""


class Queue:
    """The steps that are queued; their time is estimated from that of the first ones.

    To wait for all of them would be exact, but would slow the script down: it may prepare the next
    step meanwhile.
    """

    def __init__(self) -> None:
        self._probes = 0
        self._taken = math.inf
        self._call = math.inf
        self._steps = 0
        self._called = 0.0
        self._empty_at = 0.0

    @property
    def _seconds(self) -> float:
        """How long a step is computed after its call. Other programs only make it longer."""
        return max(self._taken - self._call, 0.0) if self._probes > 1 else 0.0

    def added(self, result: Any, called: float) -> None:
        """A step was called, and has just returned this array."""
        self._steps += 1
        self._called = called
        self._call = min(self._call, clock() - called)
        if self._probes < _PROBES:
            result.block_until_ready()
            now = clock()
            self._probes += 1
            self._taken = min(self._taken, now - called)
            self.is_empty(now)

    def is_empty(self, now: float) -> None:
        """Nothing is queued."""
        self._steps = 0
        self._empty_at = now

    def was_read(self, seconds: float) -> None:
        """A result was read; if that took long, it has waited for the steps."""
        if seconds > _WAIT * self._seconds:
            self.is_empty(clock())

    def empty_at(self) -> float:
        """Return when all steps will have been computed; an estimate."""
        if not self._steps:
            return self._empty_at
        return max(self._empty_at + self._steps * self._seconds, self._called + self._seconds)
