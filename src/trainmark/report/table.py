"""Tables as data, for the terminal, Markdown, HTML and CSV renderers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Generic, Literal, TypeVar

from trainmark import units

Tone = Literal["plain", "strong", "dim", "good", "bad", "doubtful"]
Scalar = str | float | int | bool | None
Item = TypeVar("Item")


@dataclass(frozen=True)
class Cell:
    """One number or word.

    Args:
        text: the number, with its unit, or the word.
        detail: shown below or after it, such as its interval.
        tone: what its colour says.
        value: the sort key.
    """

    text: str
    detail: str = ""
    tone: Tone = "plain"
    value: float | None = None


@dataclass(frozen=True)
class Field(Generic[Item]):
    """A column, and the function that gives its cell for an item.

    Args:
        title: title, with the unit if the cells have none.
        of: returns the cell, or the text of a plain one.
        align: ``right`` for numbers.
        optional: dropped if the terminal is narrow, from the last one on.
        meaning: explanation in the legend.
    """

    title: str
    of: Callable[[Item], Cell | str] = str
    align: Literal["left", "right"] = "left"
    optional: bool = False
    meaning: str = ""

    @property
    def heading(self) -> str:
        """The title on one line."""
        return self.title.replace("\n", " ")

    def cell(self, item: Item) -> Cell:
        """Return the cell for ``item``."""
        shown = self.of(item)
        return Cell(shown) if isinstance(shown, str) else shown


@dataclass(frozen=True)
class TableRow:
    """One row of a table.

    Args:
        cells: one per column.
        data: unrounded values by JSON key.
        starts_section: draw a line above it.
    """

    cells: tuple[Cell, ...]
    data: Mapping[str, Scalar] = field(default_factory=dict)
    starts_section: bool = False


@dataclass(frozen=True)
class Table:
    """A title, conditions that all rows share, the rows, and notes below them.

    Args:
        answer: the sentence that answers the user's question.
    """

    title: str
    conditions: tuple[str, ...] = ()
    columns: tuple[Field[Any], ...] = ()
    rows: tuple[TableRow, ...] = ()
    notes: tuple[str, ...] = ()
    answer: Cell | None = None

    def legend(self, shown: Iterable[Field[Any]] | None = None) -> list[str]:
        """Return the meaning of each column, or only of the ``shown`` ones."""
        columns = self.columns if shown is None else shown
        return [f"{column.heading}: {column.meaning}" for column in columns if column.meaning]


def table_of(
    items: Iterable[Item],
    fields: Sequence[Field[Item]],
    *,
    title: str,
    conditions: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    data: Callable[[Item], Mapping[str, Scalar]] | None = None,
    starts_section: Callable[[Item], bool] | None = None,
    answer: Cell | None = None,
) -> Table:
    """Return a table with a row per item.

    Args:
        data: returns an item's unrounded values by JSON key; None for none.
        starts_section: whether to draw a line above an item's row; None for no lines.
    """
    rows = []
    for item in items:
        cells = tuple(field.cell(item) for field in fields)
        values = {} if data is None else data(item)
        rows.append(TableRow(cells, values, starts_section is not None and starts_section(item)))
    return Table(title, conditions, tuple(fields), tuple(rows), notes, answer)


def text_of(path: str, written: Callable[[Any], str] = str) -> Callable[[Any], str]:
    """Return a function for a :class:`Field`: the text of an item's attribute, such as ``a.b``."""
    read = attrgetter(path)

    def text(item: Any) -> str:
        return written(read(item))

    return text


def number_of(path: str, written: Callable[[float | None], str]) -> Callable[[Any], Cell]:
    """Return a function for a :class:`Field`: the :func:`number` in an item's attribute."""
    read = attrgetter(path)

    def cell(item: Any) -> Cell:
        return number(read(item), written)

    return cell


def toned(path: str, tone: Tone) -> Callable[[Any], Cell]:
    """Return a function for a :class:`Field`: the text in an item's attribute, in this tone."""
    read = attrgetter(path)

    def cell(item: Any) -> Cell:
        return Cell(read(item), tone=tone)

    return cell


def number(value: float | None, written: Callable[[float | None], str]) -> Cell:
    """Return a cell with the formatted number, sorted by its value."""
    return Cell(written(value), value=value)


def interval(low: float | None, high: float | None) -> str:
    """Return `` [1.21, 1.34]``, to append to an estimate; empty if a bound is unknown."""
    if low is None or high is None:
        return ""
    return f" [{units.significant(low)}, {units.significant(high)}]"


def span(low: str, high: str) -> str:
    """Return ``7.20–7.44 s`` for ``7.20 s`` and ``7.44 s``: a common unit only once."""
    number, _, unit = low.partition(" ")
    has_common_unit = unit and high.endswith(f" {unit}") and " " not in unit
    return f"{number}–{high}" if has_common_unit else f"{low}–{high}"
