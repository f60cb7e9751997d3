"""Text that is safe in a terminal, HTML and SVG: without control characters."""

from __future__ import annotations

import re

STEERING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    # These change the direction of text (Unicode's Bidi_Control).
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
    r"\u2028\u2029\ud800-\udfff]"  # line and paragraph separators, and surrogates
)


def printable(text: str) -> str:
    """Replace each control character and surrogate in ``text`` with a mark."""
    return STEERING.sub("\N{REPLACEMENT CHARACTER}", text)
