"""Draw tables as for a terminal, and check that they contain no control characters."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Sequence

from trainmark.report.console import console, draw_all
from trainmark.report.csv_text import to_csv
from trainmark.report.markdown import to_markdown
from trainmark.report.table import Table

_DIRECTIONS = ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")


def drawn(tables: Sequence[Table]) -> str:
    """Return the text on the screen; AssertionError if it contains a control character."""
    screen = console()
    written = io.StringIO()
    screen.file = written
    draw_all(screen, tables)
    text = written.getvalue()
    assert harmless(text), text
    for line in to_csv(tables).splitlines():
        assert not line.startswith(("=", "+", "@")), line
    to_markdown(tables)
    return text


def harmless(text: str) -> bool:
    """Whether it has no control characters except line ends, and nothing that changes the text
    direction."""
    return not any(map(_steers, text.replace("\n", "")))


def _steers(each: str) -> bool:
    return (
        unicodedata.category(each) in ("Cc", "Zl", "Zp", "Cs")
        or unicodedata.bidirectional(each) in _DIRECTIONS
        or each in "\u061c\u200e\u200f"  # Unicode classifies these as letters
    )
