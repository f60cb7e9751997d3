"""Tables as CSV: unrounded numbers in base units, one header a kind of table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from trainmark.report.printable import printable
from trainmark.report.table import Scalar, Table

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "|", "＝", "＋", "－", "＠")
"""How one may begin, in spreadsheets of any language."""


def to_csv(tables: Iterable[Table]) -> str:
    """All rows of tables with the same data keys under one header; another header follows after an empty line.

    Seconds are seconds, accuracies and margins fractions; unknown is empty, what is not finite ``nan`` or ``inf``.
    """
    blocks: dict[tuple[str, ...], list[dict[str, Scalar]]] = {}
    for table in tables:
        for row in table.rows:
            blocks.setdefault(tuple(row.data), []).append(dict(row.data))
    written = []
    for keys, rows in blocks.items():
        text = io.StringIO()
        writer = csv.DictWriter(text, keys, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
        written.append(text.getvalue())
    return "\n".join(written)


def _cell(value: Scalar) -> Scalar:
    """Text that a spreadsheet would take for a formula begins with an apostrophe."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip()[:1] in _FORMULA or value[:1] in _FORMULA else text
