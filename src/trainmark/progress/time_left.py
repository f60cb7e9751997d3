"""How fast it goes, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainmark.execute.parent.task import Task


@dataclass
class TaskTime:
    """How long a task has computed so far, without the turns of others.

    Args:
        kind: equal for tasks that take about as long.
        elapsed: seconds since it began.
        share: of its steps that are done.
        trained: seconds since its first step, without its start-up.
    """

    kind: str
    elapsed: float = 0.0
    share: float = 0.0
    trained: float = 0.0


class TimeLeft:
    """Seconds until the last task is done, from how long the same side took before."""

    def __init__(self, tasks: Sequence[Task[Any]]) -> None:
        self._waiting = [task.first.title for task in tasks]
        self._running: list[TaskTime] = []
        self._took: dict[str, float] = {}

    def started(self, kind: str) -> TaskTime:
        """A task begins; who follows it keeps what is returned up to date."""
        if kind in self._waiting:
            self._waiting.remove(kind)
        self._running.append(TaskTime(kind))
        return self._running[-1]

    def done(self, task: TaskTime) -> None:
        """It has ended."""
        self._running.remove(task)
        self._took[task.kind] = task.elapsed

    def estimate(self) -> float | None:
        """Seconds left; None when unknown."""
        known = [(task, rest) for task in self._running if (rest := self._rest(task)) is not None]
        if len(known) < len(self._running):
            return None
        typical = max([*self._took.values(), *(task.elapsed + rest for task, rest in known)])
        soon = {task.kind: task.elapsed + rest for task, rest in known}
        return sum(rest for _, rest in known) + sum(
            self._took.get(kind, soon.get(kind, typical)) for kind in self._waiting
        )

    def _rest(self, task: TaskTime) -> float | None:
        # Early, the pace would tell of the first steps alone; at the end, of steps, where something else is done.
        rest = task.trained * (1 - task.share) / task.share if 0.15 < task.share < 1 else None
        known = self._took.get(task.kind)
        if known is not None and known > task.elapsed:
            return max(known - task.elapsed, rest or 0.0)  # it goes slower than the last time, or as fast
        others = self._waiting or len(self._running) > 1
        return 0.0 if rest is None and known is not None and others else rest


def whole_seconds(seconds: float) -> float:
    """An estimate has no parts of a second."""
    return float(max(round(seconds), 1))


class Throughput:
    """Samples a second, from steps counted between looks.

    Args:
        samples_a_step: as far as it is known before the first epoch tells; 0 is unknown.
    """

    def __init__(self, samples_a_step: float = 0.0) -> None:
        self.samples_a_step = samples_a_step
        self._looks: list[tuple[float, int]] = []

    def rate(self, steps: int) -> float | None:
        """Samples a second over the last looks; None until it is known."""
        self._looks = [*self._looks[-10:], (time.monotonic(), steps)]
        (start, first), (end, last) = self._looks[0], self._looks[-1]
        return self.samples_a_step * (last - first) / (end - start) if end > start and last > first else None
