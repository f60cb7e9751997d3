"""The largest accepted numbers. Larger ones would overflow a library or the memory."""

from __future__ import annotations

import math

from trainmark.errors import UsageError

MOST_ROUNDS = 10_000
MOST_THREADS = 65_536
MOST_SEED = 2**32 - 1


def require_within(name: str, value: int | None, least: int, most: int) -> None:
    """Raise UsageError unless ``value`` is None or from ``least`` to ``most``."""
    if value is not None and not least <= value <= most:
        raise UsageError(
            f"{name} is out of range", expected=f"{least:,} to {most:,}", found=f"{value:,}"[:100]
        )


def require_positive(name: str, value: float | None, most: float = math.inf) -> None:
    """Raise UsageError unless ``value`` is None or above 0 and at most ``most``."""
    if value is not None and not 0 < value <= most:
        upper = "" if most == math.inf else f", at most {most:g}"
        raise UsageError(
            f"{name} is out of range", expected=f"a number above 0{upper}", found=f"{value:g}"[:100]
        )
