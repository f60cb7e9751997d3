"""A table as data: made once, drawn by the terminal, Markdown and CSV renderers alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from trainmark import units

Tone = Literal["plain", "strong", "dim", "good", "bad", "doubtful"]
Scalar = str | float | int | bool | None
Item = TypeVar("Item")


@dataclass(frozen=True)
class Column:
    """One column.

    Args:
        title: with the unit where the cells carry none.
        align: numbers stand to the right.
        optional: may be left out where the terminal is narrow; the last one goes first.
        meaning: for the legend, which explains only the columns that are shown.
    """

    title: str
    align: Literal["left", "right"] = "left"
    optional: bool = False
    meaning: str = ""

    @property
    def heading(self) -> str:
        """Its title on one line."""
        return self.title.replace("\n", " ")


@dataclass(frozen=True)
class Cell:
    """One number or word; ``detail``, such as its interval, stands below or behind it; ``value`` is what to sort by."""

    text: str
    detail: str = ""
    tone: Tone = "plain"
    value: float | None = None


@dataclass(frozen=True)
class TableRow:
    """One line of a table.

    Args:
        cells: as many as there are columns.
        data: the same for machines, unrounded, by the names of the JSON keys.
        starts_section: draw a line above it.
    """

    cells: tuple[Cell, ...]
    data: Mapping[str, Scalar] = field(default_factory=dict)
    starts_section: bool = False


@dataclass(frozen=True)
class Table:
    """A title, the conditions that all rows share, the rows, and notes below them.

    Args:
        answer: the sentence that answers the user's question.
    """

    title: str
    conditions: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    rows: tuple[TableRow, ...] = ()
    notes: tuple[str, ...] = ()
    answer: Cell | None = None

    def legend(self, shown: Iterable[Column] | None = None) -> list[str]:
        """Return what the columns mean, only for those that are ``shown`` if given."""
        columns = self.columns if shown is None else shown
        return [f"{column.heading}: {column.meaning}" for column in columns if column.meaning]


@dataclass(frozen=True)
class Field(Generic[Item]):
    """A column and what it shows of an item.

    Args:
        of: its cell, or the text of a plain one.
    """

    title: str
    of: Callable[[Item], Cell | str]
    align: Literal["left", "right"] = "left"
    optional: bool = False
    meaning: str = ""

    @property
    def column(self) -> Column:
        """Without its cells."""
        return Column(self.title, self.align, self.optional, self.meaning)

    def cell(self, item: Item) -> Cell:
        """What it shows of ``item``."""
        shown = self.of(item)
        return Cell(shown) if isinstance(shown, str) else shown


def table_of(
    items: Iterable[Item],
    fields: Sequence[Field[Item]],
    *,
    title: str,
    conditions: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    data: Callable[[Item], Mapping[str, Scalar]] = lambda _: {},
    starts_section: Callable[[Item], bool] = lambda _: False,
    answer: Cell | None = None,
) -> Table:
    """A row for each item.

    Args:
        data: of an item, for machines.
        starts_section: whether to draw a line above an item.
    """
    rows = (TableRow(tuple(field.cell(item) for field in fields), data(item), starts_section(item)) for item in items)
    return Table(title, conditions, tuple(field.column for field in fields), tuple(rows), notes, answer)


def number(value: float | None, written: Callable[[float | None], str]) -> Cell:
    """A number in words, to be sorted by the number."""
    return Cell(written(value), value=value)


def interval(low: float | None, high: float | None) -> str:
    """`` [1.21, 1.34]``, to follow an estimate; empty where a bound is not known."""
    return "" if low is None or high is None else f" [{units.significant(low)}, {units.significant(high)}]"


def span(low: str, high: str) -> str:
    """``7.20–7.44 s`` of ``7.20 s`` and ``7.44 s``: the unit once when it is the same."""
    number, _, unit = low.partition(" ")
    return f"{number}–{high}" if unit and high.endswith(f" {unit}") and " " not in unit else f"{low}–{high}"
