"""Tables in Markdown, and numbers with their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from trainmark import units

UNKNOWN = units.MISSING


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Args:
        title: its head.
        number: whether it is aligned to the right.
    """

    title: str
    number: bool = True


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; empty without rows."""
    lines = [f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in rows]
    if not lines:
        return ""
    head = f"| {' | '.join(column.title for column in columns)} |"
    rule = f"| {' | '.join('---:' if column.number else '---' for column in columns)} |"
    return "\n".join([head, rule, *lines])


def interval(estimate: dict[str, Any] | None) -> str:
    """Write a ratio with its interval, or with the only bound that is known.

    Args:
        estimate: has ``ratio`` or ``value``, and perhaps ``low`` and ``high``.
    """
    if not estimate:
        return UNKNOWN
    value = estimate.get("ratio", estimate.get("value"))
    if value is None:
        return UNKNOWN
    low = estimate.get("low")
    high = estimate.get("high")
    if low is None and high is None:
        return f"{value:.2f}×"
    if high is None:
        return f"{value:.2f}× [≥ {low:.2f}]"
    if low is None:
        return f"{value:.2f}× [≤ {high:.2f}]"
    return f"{value:.2f}× [{low:.2f}, {high:.2f}]"


def percent(share: float | None, digits: int = 1) -> str:
    """Write a share as percent."""
    return UNKNOWN if share is None else f"{share:.{digits}%}".replace("%", " %")


def number(value: float | None, digits: int = 3) -> str:
    """Write a number with significant digits."""
    return UNKNOWN if value is None else units.significant(value, digits)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
