"""Tables on a terminal, drawn by rich."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from trainmark.report.printable import printable
from trainmark.report.table import Cell, Table, Tone

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table as RichTable
    from rich.text import Text

PIPED_WIDTH = 200
"""Width of piped output, unless COLUMNS is set."""
_STYLES: dict[Tone, str] = {
    "plain": "",
    "strong": "bold",
    "dim": "dim",
    "good": "green",
    "bad": "red",
    "doubtful": "yellow",
}


def console(*, to_stderr: bool = False, quiet: bool = False) -> Console:
    """Return a console as wide as the terminal, as COLUMNS says, or as :data:`PIPED_WIDTH`."""
    made = new_console(stderr=to_stderr, quiet=quiet)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = PIPED_WIDTH
    elif made.is_dumb_terminal:  # rich takes it for one of 80 columns
        made.size = shutil.get_terminal_size()
    return made


def new_console(**options: Any) -> Console:
    """Return a console that escapes control characters in the text.

    Args:
        options: of :class:`rich.console.Console`.
    """
    from rich.console import Console, RenderableType
    from rich.segment import Segment

    class Screen(Console):
        """A console that passes on rich's control codes only, not those in the text."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                if segment.control:
                    yield segment
                else:
                    yield Segment(printable(segment.text), segment.style)

    return Screen(soft_wrap=False, highlight=False, **options)


def draw_all(console: Console, tables: Iterable[Table], *, legend: bool = False) -> None:
    """Print each table as it comes, then how to get the ``legend`` if it was not asked for."""
    explains = False
    for number, table in enumerate(tables):
        if number:
            console.print()
        draw(console, table, legend=legend)
        explains = explains or bool(table.legend())
    if explains and not legend:
        console.print("--legend explains the columns.", style="dim")


def draw(console: Console, table: Table, *, legend: bool = False) -> None:
    """Print answer, title, conditions, grid and notes of ``table``.

    Optional columns that don't fit are listed instead.

    Args:
        legend: explain the columns that are shown.
    """
    from rich.padding import Padding
    from rich.text import Text

    if table.answer is not None:
        console.print(Text(table.answer.text, style=f"bold {_STYLES[table.answer.tone]}".strip()))
        console.print()
    console.print(Text(table.title, style="bold" if table.answer is None else "underline"))
    for condition in table.conditions:
        console.print(Text(condition, style="dim"))
    notes = list(table.notes)
    if table.rows:
        kept = _fitting(console, table)
        columns = [table.columns[position] for position in kept]
        dropped = [column.heading for column in table.columns if column not in columns]
        if dropped:
            notes.append(f"Hidden at this width: {', '.join(dropped)}.")
        notes += table.legend(columns) if legend else []
        console.print(Padding(_grid(table, kept), (1, 0, 1 if notes else 0, 0), expand=False))
    for note in notes:
        console.print(Text(note, style="dim"))


def _fitting(console: Console, table: Table) -> list[int]:
    """Return the positions of the columns that fit."""
    kept = list(range(len(table.columns)))
    droppable = [position for position in kept if table.columns[position].optional]
    unbounded = console.options.update(width=10_000)
    while droppable:
        width = console.measure(_grid(table, kept), options=unbounded).maximum
        if width <= console.width:
            break
        kept.remove(droppable.pop())
    return kept


def _grid(table: Table, kept: list[int]) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable

    grid = RichTable(
        box=box.SIMPLE_HEAD,
        header_style="bold",
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    for position in kept:
        column = table.columns[position]
        # A number that doesn't fit is wrapped; an ellipsis would hide digits.
        grid.add_column(column.title, justify=column.align, overflow="fold", vertical="top")
    for number, row in enumerate(table.rows):
        if row.starts_section and number:
            grid.add_section()
        grid.add_row(*(_text(row.cells[position]) for position in kept))
    return grid


def _text(cell: Cell) -> Text:
    from rich.text import Text

    text = Text(cell.text, style=_STYLES[cell.tone])
    return text.append(f"\n{cell.detail}", style="dim not bold") if cell.detail else text
