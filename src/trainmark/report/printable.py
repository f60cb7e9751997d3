"""Text that HTML and SVG may hold."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def printable(text: str) -> str:
    """``text`` with a mark in the place of each control character."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
