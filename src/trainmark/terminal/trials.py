"""Progress of a sweep: a live line, and a permanent line per finished trial."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console

from trainmark import units
from trainmark.execute.parent.plan import Run
from trainmark.record.caveats import Caveat
from trainmark.record.facts import tokens_of
from trainmark.record.record import Record
from trainmark.terminal.runs import print_ended
from trainmark.terminal.work import WorkProgress
from trainmark.workload.grid import title


class TrialProgress(WorkProgress):
    """Shows the progress of ``trials`` trials, ``done`` of which already had a record."""

    def __init__(self, screen: Console, text: str, folder: Path, trials: int, done: int) -> None:
        super().__init__(screen, text)
        self._folder = folder
        self._trials = trials
        self._before = done
        self._ended = 0

    def __enter__(self) -> Self:
        super().__enter__()
        self.on_progress(f"{self._before}/{self._trials} trials", 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            kept = f"Finished trials are in {self._folder}" if self._ended else "No trial finished"
            self._screen.print(
                f"{kept}; --resume with the same command continues.", soft_wrap=True, markup=False
            )

    def recorded(self, record: Record) -> None:
        """Print the line of a finished trial."""
        self._ended += 1
        print_ended(self._screen, record, _summary(record))
        done = self._before + self._ended
        self.on_progress(
            f"{done}/{self._trials} trials", self._ended / (self._trials - self._before)
        )

    def lost(self, run: Run, reason: str) -> None:
        """Print that a trial's worker died and the trial is retried."""
        self._screen.print(
            f"note: {run.turn}: {reason}; it is retried", soft_wrap=True, markup=False
        )


def _summary(record: Record) -> str:
    which = f"trial {record.group.trial}, {title(record.group.values or {})}"
    if record.outcome.status != "ok":
        return f"{which}: {record.outcome.status}, {record.outcome.reason}"
    early = ""
    if Caveat.STOPPED_EARLY in record.caveats:
        early = f", stopped after epoch {len(record.epochs)}"
    learnt = f"test accuracy {units.percent(record.final.test_accuracy)}"
    if tokens_of(record) is not None:
        learnt = f"test loss {units.loss(record.final.test_loss)}"
    return f"{which}: {learnt}, trained {units.seconds(record.final.training_seconds)}{early}"
