"""Text that a terminal, HTML and SVG may hold: letters, and nothing that steers what shows them."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """``text`` with a mark for each character that moves, colours or reorders others, or is half of one."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
