"""The progress of every study, on the terminal's stderr."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainmark.execute.parent.task import Task
from trainmark.progress.data import DataProgress
from trainmark.progress.runs import RunProgress
from trainmark.progress.study import StudyProgress
from trainmark.report.terminal import console
from trainmark.study.progress import Progress, Tell


class TerminalProgress(Progress):
    """Shows a study where it can be seen next to what is printed.

    Args:
        quiet: show nothing.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.screen = console(to_stderr=True, quiet=quiet)

    def say(self, text: str) -> None:
        """Print ``text`` as it is."""
        self.screen.print(text, soft_wrap=True, markup=False)

    def preparing(self) -> DataProgress:
        """A line that moves."""
        return DataProgress(self.screen)

    def running(
        self, tasks: Sequence[Task[Any]], folder: Path, *, log: bool = False, resumes: bool = True
    ) -> RunProgress:
        """A line that moves, and one that stays for each run that has ended."""
        return RunProgress(self.screen, tasks, folder, log=log, resumes=resumes)

    @contextmanager
    def working(self, title: str) -> Iterator[Tell]:
        """The title, and a line that moves."""
        with StudyProgress(self.screen, title) as progress:
            yield progress.tell
