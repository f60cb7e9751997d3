"""The largest accepted numbers. Larger ones would overflow a library or the memory."""

from __future__ import annotations

from trainmark.errors import UsageError

MOST_ROUNDS = 10_000
MOST_THREADS = 65_536
MOST_SEED = 2**32 - 1


def require_within(name: str, value: int | None, least: int, most: int) -> None:
    """Raise :class:`~trainmark.errors.UsageError` unless ``value`` is None or from ``least`` to ``most``."""
    if value is not None and not least <= value <= most:
        raise UsageError(f"{name} is out of bounds", expected=f"{least:,} to {most:,}", found=f"{value:,}"[:100])
