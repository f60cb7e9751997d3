"""Progress of the preparation: downloads, generated datasets, the detection of devices."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn

from trainmark import units
from trainmark.execute.parent.request import PreparationObserver
from trainmark.terminal.line import ProgressLine


class PreparationProgress(ProgressLine, PreparationObserver):
    """Shows downloads, generated datasets and the detection of devices."""

    def __init__(self, screen: Console) -> None:
        super().__init__(
            screen,
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[done]}"),
            TimeRemainingColumn(compact=True),
        )
        self._tasks: dict[str, TaskID] = {}
        self._doing = ""

    def __call__(self, done: int, total: int | None, name: str) -> None:
        """Show the progress of a download."""
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(escape(name), total=total, done="")
        text = f"{units.bytes_(done)} of {units.bytes_(total)}" if total else units.bytes_(done)
        self._progress.update(self._tasks[name], completed=done, total=total, done=text)
        self._doing = f"{name}: {text}"

    def asking(self, backend: str) -> None:
        """Show that a backend's devices are being detected."""
        self._begin(f"Detecting devices ({backend})")

    def measuring(self, what: str) -> None:
        """Show that a device's peak speed is being measured."""
        self._begin(f"Measuring peak speed ({what})")

    def _begin(self, what: str) -> None:
        self._progress.add_task(escape(what), total=None, done="")
        self._doing = what

    def _words(self) -> str:
        return self._doing
