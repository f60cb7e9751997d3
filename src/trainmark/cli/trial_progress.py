"""What a person sees while trials run side by side: one line that moves, and one for each trial that is done."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from trainmark import units
from trainmark.cli.plain_lines import PlainLines
from trainmark.execute.plan import Run
from trainmark.record.record import Record
from trainmark.workload.grid import title


class TrialProgress:
    """Of trials that are yet to be done.

    Args:
        screen: where it is drawn.
        trials: how many.
        done: how many more were done before.
    """

    def __init__(self, screen: Console, trials: int, done: int) -> None:
        self._screen, self._trials, self._before = screen, trials, done
        self._ended, self._failed = 0, 0
        self._started = self._last = time.monotonic()
        self._progress = Progress(
            TextColumn("{task.description}"),
            TextColumn("{task.fields[left]}", style="cyan"),
            BarColumn(bar_width=24),
            console=screen,
            transient=True,
            disable=not screen.is_terminal,
        )
        self._bar = self._progress.add_task("", total=trials, left="")
        self._doing = ""
        self._lines = PlainLines(screen, lambda: self._doing)

    def __enter__(self) -> TrialProgress:
        self._started = time.monotonic()
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._progress.stop()

    def recorded(self, record: Record) -> None:
        """One line that stays."""
        ok = record.outcome.status == "ok"
        self._ended += 1
        self._last = time.monotonic()
        self._failed += not ok
        mark = "[green]✓[/green]" if ok else "[red]✗[/red]"
        self._screen.print(f"{mark} {escape(_summary(record))}", soft_wrap=True, highlight=False)
        self._lines.another_said()

    def lost(self, run: Run, reason: str) -> None:
        """A trial's worker died; it will be tried again."""
        self._screen.print(f"note: {run.turn}: {reason}; it is tried again", soft_wrap=True, markup=False)

    def counted(self, running: int, waiting: int) -> None:
        """How many trials are being trained, and how many are yet to be."""
        failed = f", {self._failed} failed" if self._failed else ""
        done = f"{self._before + self._ended}/{self._before + self._trials} trials{failed}, {running} running"
        left = self._left(running + waiting)
        words = "" if left is None or left <= 0 else f"~{units.seconds(float(max(round(left), 1)))} left"
        self._progress.update(
            self._bar,
            completed=self._ended,
            description=done,
            left=words,
        )
        self._doing = f"{done}, {words}" if words else done
        self._lines.look()

    def interrupted(self, folder: Path) -> None:
        """What Ctrl-C leaves."""
        kept = f"What is finished is in {folder}" if self._ended else "No trial was finished"
        self._screen.print(f"{kept}; the same command with --resume goes on.", soft_wrap=True, markup=False)

    def _left(self, trials: int) -> float | None:
        """Seconds until ``trials`` more have ended, at the pace of those that have; None before the first."""
        if not self._ended:
            return None
        pace = (self._last - self._started) / self._ended
        return pace * trials - (time.monotonic() - self._last)


def _summary(record: Record) -> str:
    which = f"trial {record.group.trial}, {title(record.group.values or {})}"
    if record.outcome.status != "ok":
        return f"{which}: {record.outcome.status}, {record.outcome.reason}"
    final = record.final
    facts = [f"trained {units.seconds(final.training_seconds)}"]
    if final.test_accuracy is not None:
        facts.insert(0, f"test accuracy {units.percent(final.test_accuracy)}")
    return f"{which}: {', '.join(facts)}"
