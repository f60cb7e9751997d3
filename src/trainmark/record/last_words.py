"""What a process said at its end: its error or, without one, its last line."""

from __future__ import annotations

import re

_TRACEBACK = "Traceback (most recent call last):\n"
_RANK = re.compile(r"^\[rank\d+\]: ?", re.MULTILINE)
"""What PyTorch puts before each line of an error of one of several ranks."""


def last_words(printed: str | None) -> str:
    """Return the error of the last traceback, or else the last line; empty without output.

    Libraries often print warnings after a traceback, such as about processes that were left.
    """
    text = _RANK.sub("", printed or "")
    _, raised, after = text.rpartition(_TRACEBACK)
    # The lines of a traceback are indented; the error follows them.
    lines = [line.strip() for line in after.splitlines() if line[:1].strip()]
    if raised and lines:
        return lines[0]
    return text.strip().rpartition("\n")[2].strip()
