"""Tables as HTML, for notebooks, in the notebook's style."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from trainmark.report.printable import printable
from trainmark.report.table import Cell, Field, Table, TableRow


def to_html(tables: Iterable[Table]) -> str:
    """Return the tables below each other, each with everything that belongs to it."""
    return "\n".join(_one(table) for table in tables)


def _one(table: Table) -> str:
    about = "".join(f"<br><small>{_escaped(line)}</small>" for line in table.conditions)
    answer = ""
    if table.answer is not None:
        answer = f"<p><strong>{_escaped(table.answer.text)}</strong></p>"
    lines = [f"{answer}<p><strong>{_escaped(table.title)}</strong>{about}</p>"]
    if table.rows:
        head = "".join(
            f'<th scope="col"{_aligned(column)}>{_escaped(column.title)}</th>'
            for column in table.columns
        )
        body = "".join(f"<tr>{_cells(row, table.columns)}</tr>" for row in table.rows)
        lines.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    notes = (*table.notes, *table.legend())
    if notes:
        lines.append(f"<p><small>{'<br>'.join(map(_escaped, notes))}</small></p>")
    return "".join(lines)


def _cells(row: TableRow, columns: Sequence[Field[Any]]) -> str:
    return "".join(_cell(cell, column) for cell, column in zip(row.cells, columns, strict=True))


def _cell(cell: Cell, column: Field[Any]) -> str:
    text = _escaped(cell.text)
    if cell.tone == "strong":
        text = f"<strong>{text}</strong>"
    detail = f"<br><small>{_escaped(cell.detail)}</small>" if cell.detail else ""
    return f"<td{_aligned(column)}>{text}{detail}</td>"


def _escaped(text: str) -> str:
    return html.escape(printable(text))


def _aligned(column: Field[Any]) -> str:
    return f' style="text-align:{column.align}"'
