"""How the slow parts tell how far they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int | None, str], None]
"""Called with the bytes done, the bytes in all or None when nobody knows, and the name of what is fetched or drawn."""


def silent(done: int, total: int | None, name: str) -> None:
    """Progress that nobody watches."""
