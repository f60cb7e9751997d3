"""Progress of a study: the current step, the share done, and the time left."""

from __future__ import annotations

import time
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from trainmark import units
from trainmark.terminal.line import ProgressLine
from trainmark.terminal.time_left import whole_seconds


class WorkProgress(ProgressLine):
    """A live line for a study: the current step, the share done, and the time left."""

    def __init__(self, screen: Console, title: str) -> None:
        super().__init__(
            screen,
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TimeRemainingColumn(compact=True),
        )
        self._bar = self._progress.add_task("", total=1.0)
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
        self._progress.update(self._bar, description=escape(what), completed=share)

    def _words(self) -> str:
        if not 0.05 < self._share < 1:  # too early to estimate the time left
            return self._doing
        left = (time.monotonic() - self._started) * (1 - self._share) / self._share
        done = units.percent(self._share, 0)
        return f"{self._doing}, {done} done, ~{units.seconds(whole_seconds(left))} left"
