"""How fast it goes, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainmark.execute.parent.task import Task


class TimeLeft:
    """Seconds until the last task is done, from how long the same side took before."""

    def __init__(self, tasks: Sequence[Task[Any]]) -> None:
        self._left = [task.first.title for task in tasks]
        self._took: dict[object, float] = {}

    def task_done(self, seconds: float) -> None:
        """The first of the tasks left has taken so long."""
        self._took[self._left.pop(0)] = seconds

    def estimate(self, elapsed: float, share: float, trained: float) -> float | None:
        """Seconds left; None when unknown.

        Args:
            elapsed: seconds since the running task began.
            share: of its steps that are done.
            trained: seconds since its first step, without its start-up.
        """
        if not self._left:
            return 0.0
        # Early, the pace would tell of the first steps alone; at the end, of steps, where something else is done.
        rest = trained * (1 - share) / share if 0.15 < share < 1 else None
        known = self._took.get(self._left[0])
        if known is not None and known > elapsed:
            rest = max(known - elapsed, rest or 0.0)  # it goes slower than the last time, or as fast
        if rest is None and (known is None or len(self._left) == 1):
            return None
        now = elapsed + (rest or 0.0)
        typical = max(self._took.values(), default=now)
        return (rest or 0.0) + sum(
            self._took.get(kind, now if kind == self._left[0] else typical) for kind in self._left[1:]
        )


def whole_seconds(seconds: float) -> float:
    """An estimate has no parts of a second."""
    return float(max(round(seconds), 1))


class Throughput:
    """Samples a second, from steps counted between looks."""

    def __init__(self) -> None:
        self.samples_a_step = 0.0  # unknown until the first epoch tells
        self._looks: list[tuple[float, int]] = []

    def rate(self, steps: int) -> float | None:
        """Samples a second over the last looks; None until it is known."""
        self._looks = [*self._looks[-10:], (time.monotonic(), steps)]
        (start, first), (end, last) = self._looks[0], self._looks[-1]
        return self.samples_a_step * (last - first) / (end - start) if end > start and last > first else None
