"""Progress of studies on stderr."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainmark.execute.parent.task import Task
from trainmark.execute.parent.time_limit import NO_LIMIT, TimeLimit
from trainmark.report.console import console
from trainmark.study.observer import OnProgress, StudyObserver
from trainmark.terminal.preparation import PreparationProgress
from trainmark.terminal.runs import RunProgress
from trainmark.terminal.work import WorkProgress


class TerminalObserver(StudyObserver):
    """Shows a study's progress on stderr.

    Args:
        quiet: show nothing.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.screen = console(to_stderr=True, quiet=quiet)

    def message(self, text: str) -> None:
        """Print ``text`` unchanged."""
        self.screen.print(text, soft_wrap=True, markup=False)

    def preparing(self) -> PreparationProgress:
        """Return a live line for the preparation."""
        return PreparationProgress(self.screen)

    def running(
        self,
        tasks: Sequence[Task[Any]],
        folder: Path,
        *,
        resumes: bool = True,
        limit: TimeLimit = NO_LIMIT,
    ) -> RunProgress:
        """Return a live line for the runs, with a permanent line per finished run."""
        return RunProgress(self.screen, tasks, folder, resumes=resumes, limit=limit)

    @contextmanager
    def working(self, title: str, limit: TimeLimit = NO_LIMIT) -> Iterator[OnProgress]:
        """Show the title and a live line."""
        with WorkProgress(self.screen, title, limit) as progress:
            yield progress.on_progress
