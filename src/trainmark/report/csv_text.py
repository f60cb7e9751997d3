"""Tables as CSV: unrounded numbers in base units, one header per kind of table."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable

from trainmark.analysis.grouping import grouped
from trainmark.report.printable import printable
from trainmark.report.table import Scalar, Table

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "|", "＝", "＋", "－", "＠")
"""First characters of formulas in common spreadsheets."""


def to_csv(tables: Iterable[Table]) -> str:
    """Return the tables as CSV; those with the same keys share a header.

    An empty line precedes the next header.
    Durations are in seconds, accuracies and margins are fractions; unknown values are empty.
    """
    written = []
    data = itertools.chain.from_iterable(table.rows for table in tables)
    for keys, rows in grouped((row.data for row in data), tuple).items():
        text = io.StringIO()
        writer = csv.DictWriter(text, keys, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
        written.append(text.getvalue())
    return "\n".join(written)


def _cell(value: Scalar) -> Scalar:
    """Prefix text that a spreadsheet would take for a formula with an apostrophe."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip()[:1] in _FORMULA or value[:1] in _FORMULA else text
