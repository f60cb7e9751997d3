"""Text that a terminal, HTML and SVG may hold: letters, and nothing that steers what shows them."""

from __future__ import annotations

import re

STEERING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but the tab and the end of a line
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # changes of direction (Unicode's Bidi_Control)
    r"\u2028\u2029\ud800-\udfff]"  # ends of lines and paragraphs that are no newline, and halves of characters
)


def printable(text: str) -> str:
    """``text`` with a mark for each character that moves, colours or reorders others, or is half of one."""
    return STEERING.sub("\N{REPLACEMENT CHARACTER}", text)
