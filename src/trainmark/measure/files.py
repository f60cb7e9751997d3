"""Read the system's small status files; None if they can't be read."""

from __future__ import annotations

from pathlib import Path


def read_text(path: Path) -> str | None:
    """Return the content of ``path`` without surrounding white space."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def read_number(path: Path) -> int | None:
    """Return the integer in ``path``."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
