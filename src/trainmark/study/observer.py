"""Progress of a study, which never writes to the screen itself: the caller passes an observer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeAlias

from trainmark.execute.parent.request import PreparationObserver
from trainmark.execute.parent.scheduler import RunObserver
from trainmark.execute.parent.task import Task
from trainmark.execute.parent.time_limit import NO_LIMIT, TimeLimit

OnProgress: TypeAlias = Callable[[str, float], None]
"""Called with the current step and the share done, 0 to 1."""


def ignore_progress(_what: str, _share: float) -> None:
    """Ignore the progress."""


class StudyObserver:
    """Observes a study; override methods to show something. This class shows nothing."""

    def message(self, text: str) -> None:
        """Show a sentence, such as the plan."""

    def preparing(self) -> AbstractContextManager[PreparationObserver]:
        """Follow downloads, the detection of devices and the measurement of their peaks."""
        return nullcontext(PreparationObserver())

    def running(
        self,
        tasks: Sequence[Task[Any]],
        folder: Path,
        *,
        resumes: bool = True,
        limit: TimeLimit = NO_LIMIT,
    ) -> AbstractContextManager[RunObserver]:
        """Follow runs.

        Args:
            folder: where the records are written.
            resumes: whether the study has a ``--resume``.
            limit: when all runs end.
        """
        del tasks, folder, resumes, limit
        return nullcontext(RunObserver())

    def working(
        self, title: str, limit: TimeLimit = NO_LIMIT
    ) -> AbstractContextManager[OnProgress]:
        """Follow work that leaves no records, and ends at ``limit``."""
        del title, limit
        return nullcontext(ignore_progress)
