"""Group any items by a key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

_Item = TypeVar("_Item")
_Group = TypeVar("_Group", bound=Hashable)


def grouped(items: Iterable[_Item], key: Callable[[_Item], _Group]) -> dict[_Group, list[_Item]]:
    """Return the items of each key, in the order in which keys and items came first."""
    found: dict[_Group, list[_Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found
