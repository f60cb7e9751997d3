"""Estimates of throughput and time left."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainmark import units
from trainmark.execute.parent.task import Task
from trainmark.execute.parent.time_limit import TimeLimit


@dataclass
class TaskTime:
    """The computing time of a task so far, without other sides' turns.

    Args:
        kind: equal for tasks of about the same duration.
        elapsed: seconds since its start.
        share: share of its steps that are done.
        trained: seconds since its first step, without start-up.
    """

    kind: str
    elapsed: float = 0.0
    share: float = 0.0
    trained: float = 0.0


class TimeLeft:
    """Estimates the seconds until the last task is done, from earlier tasks of the same side."""

    def __init__(self, tasks: Sequence[Task[Any]]) -> None:
        self._waiting = [kind_of(task) for task in tasks]
        self._running: list[TaskTime] = []
        self._took: dict[str, float] = {}

    def started(self, kind: str) -> TaskTime:
        """Start a task; the caller keeps the returned object up to date."""
        if kind in self._waiting:
            self._waiting.remove(kind)
        self._running.append(TaskTime(kind))
        return self._running[-1]

    def done(self, task: TaskTime) -> None:
        """End a task."""
        self._running.remove(task)
        self._took[task.kind] = task.elapsed

    def estimate(self) -> float | None:
        """Return the seconds left; None if unknown."""
        left = 0.0
        durations = [*self._took.values()]
        soon: dict[str, float] = {}
        for task in self._running:
            rest = self._rest(task)
            if rest is None:
                return None
            left += rest
            soon[task.kind] = task.elapsed + rest
            durations.append(task.elapsed + rest)
        typical = max(durations)
        for kind in self._waiting:
            left += self._took.get(kind, soon.get(kind, typical))
        return left

    def _rest(self, task: TaskTime) -> float | None:
        # Early on, the pace is that of the first steps only; at the end, no steps remain, but
        # other work does.
        rest = task.trained * (1 - task.share) / task.share if 0.15 < task.share < 1 else None
        known = self._took.get(task.kind)
        if known is not None and known > task.elapsed:
            return max(known - task.elapsed, rest or 0.0)  # at least as long as the last time
        has_others = bool(self._waiting) or len(self._running) > 1
        if rest is None and known is not None and has_others:
            return 0.0
        return rest


def kind_of(task: Task[Any]) -> str:
    """Return what tasks of about the same duration have in common."""
    return f"{task.first.title}{', slices' if task.first.blocks else ''}"


def whole_seconds(seconds: float) -> float:
    """Round an estimate to whole seconds."""
    return float(max(round(seconds), 1))


def at_most_left(limit: TimeLimit) -> str:
    """Return the time until a limit, in words; empty without one."""
    if math.isinf(limit.seconds):
        return ""
    return f"at most {units.seconds(whole_seconds(limit.left))} left"


class Throughput:
    """Samples per second, from the steps counted between calls.

    Args:
        samples_a_step: samples per step; 0 is unknown.
    """

    def __init__(self, samples_a_step: float = 0.0) -> None:
        self.samples_a_step = samples_a_step
        self._looks: list[tuple[float, int]] = []

    def rate(self, steps: int) -> float | None:
        """Return samples per second since a look at earlier steps; None until known.

        Steps may be counted when they are queued, so the time in which no more are counted is part
        of it.
        """
        now = time.monotonic()
        if not self._looks or steps > self._looks[-1][1]:
            self._looks = [*self._looks[-10:], (now, steps)]
        (start, first) = self._looks[0]
        (_, last) = self._looks[-1]
        return self.samples_a_step * (last - first) / (now - start) if last > first else None
