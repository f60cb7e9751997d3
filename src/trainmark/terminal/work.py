"""Progress of a study: the current step, the share done, and the time left."""

from __future__ import annotations

import math
import time
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeRemainingColumn

from trainmark import units
from trainmark.execute.parent.time_limit import NO_LIMIT, TimeLimit
from trainmark.terminal.line import ProgressLine
from trainmark.terminal.time_left import at_most_left, whole_seconds


class WorkProgress(ProgressLine):
    """A live line for a study: the current step, the share done, and the time left.

    Args:
        limit: when the study ends. With one, the line shows the share of the time that has passed:
            what share of the work is done is not known.
    """

    def __init__(self, screen: Console, title: str, limit: TimeLimit = NO_LIMIT) -> None:
        left: ProgressColumn = TimeRemainingColumn(compact=True)
        if not math.isinf(limit.seconds):
            left = TextColumn("{task.fields[left]}")
        super().__init__(screen, TextColumn("{task.description}"), BarColumn(bar_width=24), left)
        self._limit = limit
        self._bar = self._progress.add_task("", total=1.0, left="")
        self._title = title
        self._doing = ""
        self._share = 0.0
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        self._screen.print(f"{self._title}.", soft_wrap=True, markup=False, highlight=False)
        return super().__enter__()

    def on_progress(self, what: str, share: float) -> None:
        """Show the current step and the share done."""
        self._doing = what
        self._share = share
        left = at_most_left(self._limit)
        self._progress.update(self._bar, description=escape(what), completed=share, left=left)

    def _words(self) -> str:
        if not math.isinf(self._limit.seconds):
            return f"{self._doing}, {at_most_left(self._limit)}"
        if not 0.05 < self._share < 1:  # too early to estimate the time left
            return self._doing
        left = (time.monotonic() - self._started) * (1 - self._share) / self._share
        done = units.percent(self._share, 0)
        return f"{self._doing}, {done} done, ~{units.seconds(whole_seconds(left))} left"
