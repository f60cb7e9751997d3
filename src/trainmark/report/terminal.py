"""Tables on a terminal, drawn by rich."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from trainmark.report.printable import printable
from trainmark.report.table import Cell, Table, Tone

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table as RichTable
    from rich.text import Text

PIPED_WIDTH = 200
"""Columns of what is piped, unless COLUMNS says another number."""
_STYLES: dict[Tone, str] = {
    "plain": "",
    "strong": "bold",
    "dim": "dim",
    "good": "green",
    "bad": "red",
    "doubtful": "yellow",
}


def console(*, to_stderr: bool = False, quiet: bool = False) -> Console:
    """A terminal to draw on, as wide as the terminal or as COLUMNS says; else piped output is not squeezed."""
    from rich.console import Console, RenderableType
    from rich.segment import Segment

    class Screen(Console):
        """What is drawn on it steers the terminal only where it is rich that does."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

    made = Screen(stderr=to_stderr, soft_wrap=False, highlight=False, quiet=quiet)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = PIPED_WIDTH
    return made


def draw_all(console: Console, tables: Iterable[Table], *, legend: bool = False) -> None:
    """Print the tables with an empty line between them; how to get the ``legend`` is said once."""
    drawn = list(tables)
    for number, table in enumerate(drawn):
        if number:
            console.print()
        draw(console, table, legend=legend)
    if not legend and any(table.legend() for table in drawn):
        console.print("--legend explains the columns.", style="dim")


def draw(console: Console, table: Table, *, legend: bool = False) -> None:
    """Print answer, title, conditions, grid and notes of ``table``. Too narrow, it loses optional columns, and says so.

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
            notes.append(f"Left out at this width: {', '.join(dropped)}.")
        notes += table.legend(columns) if legend else []
        console.print(Padding(_grid(table, kept), (1, 0, 1 if notes else 0, 0), expand=False))
    for note in notes:
        console.print(Text(note, style="dim"))


def _fitting(console: Console, table: Table) -> list[int]:
    """The positions of as many columns as the terminal has room for."""
    kept = list(range(len(table.columns)))
    droppable = [position for position in kept if table.columns[position].optional]
    unbounded = console.options.update(width=10_000)
    while droppable and console.measure(_grid(table, kept), options=unbounded).maximum > console.width:
        kept.remove(droppable.pop())
    return kept


def _grid(table: Table, kept: list[int]) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable

    grid = RichTable(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for position in kept:
        column = table.columns[position]
        # Too narrow, a number goes on in the next line; an ellipsis would swallow digits.
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
