"""Tables as GitHub-flavoured Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trainmark.report.printable import printable
from trainmark.report.table import Cell, Table

# Text that GitHub turns into links: web and mail addresses, and mentions of users and issues.
# It does so after it has resolved escapes and entities, so only a zero-width space prevents it.
_LINKING = re.compile(r":(?=//)|www(?=\.)|@(?=\S)|#(?=\d)|(?<![a-z])gh(?=-\d)", re.IGNORECASE)


def to_markdown(tables: Iterable[Table]) -> str:
    """Return the tables below each other, each with everything that belongs to it."""
    return "\n".join(_one(table) for table in tables)


def _one(table: Table) -> str:
    lines = [f"### {_escaped(table.title)}", ""]
    if table.answer is not None:
        lines += [f"**{_escaped(table.answer.text)}**", ""]
    lines += [*(f"- {_escaped(condition)}" for condition in table.conditions), ""]
    if table.rows:
        lines += [
            _line(_escaped(column.title) for column in table.columns),
            _line("---:" if column.align == "right" else "---" for column in table.columns),
            *(_line(_cell(cell) for cell in row.cells) for row in table.rows),
            "",
        ]
    lines += [f"- {_escaped(note)}" for note in (*table.notes, *table.legend())]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    text = _escaped(cell.text)
    if cell.tone == "strong":
        text = f"**{text}**"
    return f"{text} ({_escaped(cell.detail)})" if cell.detail else text


def _escaped(text: str) -> str:
    for special in "\\|*_`<[&":
        text = text.replace(special, f"\\{special}")
    return _LINKING.sub("\\g<0>&#8203;", printable(text).replace("\n", " "))
