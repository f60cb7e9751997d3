"""Progress of downloads and generation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

OnBytes: TypeAlias = Callable[[int, int | None, str], None]
"""Called with the bytes done, the total or None if unknown, and the name of the file or dataset."""


def silent(done: int, total: int | None, name: str) -> None:
    """Report nothing."""
