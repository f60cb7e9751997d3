"""One live progress line, or occasional plain lines if the terminal can't update one."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, ProgressColumn

from trainmark.terminal.plain_lines import PlainLines


class ProgressLine:
    """A context manager that draws the line.

    Args:
        columns: columns of the live line.
    """

    def __init__(self, screen: Console, *columns: ProgressColumn) -> None:
        self._screen = screen
        self._progress = Progress(
            *columns, console=screen, transient=True, disable=not screen.is_terminal
        )
        self._lines = PlainLines(screen, self._words)

    def __enter__(self) -> Self:
        self._progress.start()
        self._lines.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._lines.__exit__(kind, error, trace)
        self._progress.stop()

    def _words(self) -> str:
        """Return the text of a plain line; empty if there is nothing to show."""
        raise NotImplementedError
