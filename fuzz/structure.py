"""Mutate JSON-like values, so that inputs get past the parser."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from typing import Any

ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    10,
    255,
    2**31,
    2**53,
    2**63,
    2**64,
    -(2**63),
    10**30,
    10**400,
    0.0,
    -0.0,
    0.5,
    1e-320,
    1e308,
    -1e308,
    "nan",
    "inf",
    "-inf",
    "",
    " ",
    "a",
    "ok",
    "cpu",
    "cuda:0",
    "float32",
    "\0",
    "\x1b[31m",
    "\x9b31m",
    "\u202e",
    "</script><script>broken()</script>",
    "[red]x[/red]",
    "=cmd|'/c calc'!A1",
    "|`*_<[",
    "../../x",
    "/dev/zero",
    "x\ny",
    "\N{REPLACEMENT CHARACTER}",
    "x" * 300,
    [],
    {},
    [[]],
    [None],
    [0],
    ["a"],
)
_FEW_ITEMS = 3
"""Items of a list whose subtrees are swapped; the others are alike."""


def rewritten(text: bytes, chance: random.Random) -> bytes | None:
    """Mutate the JSON ``text``; None if it is not JSON, or nested too deeply to be written."""
    try:
        return json.dumps(changed(json.loads(text), chance), separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return None


def swapped(value: Any, donor: Any, chance: random.Random) -> Any:
    """Return ``value`` with one to three subtrees replaced by subtrees of ``donor``.

    Most come from the same place, so that each part is valid and only their combination is not.
    """
    for _ in range(chance.randint(1, 3)):
        path = chance.choice(list(_paths(value)) or [()])
        value = _replaced(value, path, _subtree_for(path, donor, chance))
    return value


def _subtree_for(path: tuple[str | int, ...], donor: Any, chance: random.Random) -> Any:
    places = dict(_paths_with_values(donor))
    kind = chance.random()
    if kind < 0.6 and path in places:
        return places[path]
    alike = [found for place, found in places.items() if place[-1:] == path[-1:]]
    if kind < 0.9 and alike:
        return chance.choice(alike)
    return chance.choice(list(places.values()))


def _paths(value: Any) -> Iterator[tuple[str | int, ...]]:
    return (path for path, _ in _paths_with_values(value) if path)


def _paths_with_values(
    value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield every subtree with its path; of a long list, only the first items."""
    yield path, value
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value[:_FEW_ITEMS])
    for key, item in items:
        yield from _paths_with_values(item, (*path, key))


def _replaced(value: Any, path: tuple[str | int, ...], other: Any) -> Any:
    if not path:
        return other
    copied = value.copy()
    copied[path[0]] = _replaced(value[path[0]], path[1:], other)
    return copied


def changed(value: Any, chance: random.Random) -> Any:
    """Return a copy of ``value`` with one to three changes."""
    for _ in range(chance.randint(1, 3)):
        value = _changed_once(value, chance)
    return value


def _changed_once(value: Any, chance: random.Random) -> Any:
    if not isinstance(value, (dict, list)) or not value or chance.random() < 0.03:
        return _other(value, chance)
    if isinstance(value, dict):
        key = chance.choice(list(value))
        return _in_a_table(value, key, chance)
    place = chance.randrange(len(value))
    return _in_a_list(value, place, chance)


def _in_a_table(value: dict[str, Any], key: str, chance: random.Random) -> dict[str, Any]:
    action = chance.random()
    if action < 0.08:
        return {name: item for name, item in value.items() if name != key}
    if action < 0.12:
        return {**value, str(chance.choice(ODD))[:50]: value[key]}
    if action < 0.16:
        return {**value, key: value[chance.choice(list(value))]}
    return {**value, key: _changed_once(value[key], chance)}


def _in_a_list(value: list[Any], place: int, chance: random.Random) -> list[Any]:
    action = chance.random()
    if action < 0.1:
        return value[:place] + value[place + 1 :]
    if action < 0.2:
        return (
            value[:place] + value[place : place + 1] * chance.choice((2, 3, 9)) + value[place + 1 :]
        )
    if action < 0.25:
        return value[::-1]
    return [*value[:place], _changed_once(value[place], chance), *value[place + 1 :]]


def _other(value: Any, chance: random.Random) -> Any:
    kind = chance.random()
    if (
        kind < 0.4
        and isinstance(value, (int, float))
        and not isinstance(value, bool)
        and abs(value) < 2**70
    ):
        return chance.choice((value + 1, value - 1, -value, value * 2, value * 1000, 0.3))
    if kind < 0.4 and isinstance(value, str):
        return value + str(chance.choice(ODD))
    if kind < 0.45:
        for _ in range(chance.choice((2, 30))):
            value = [value] if chance.random() < 0.5 else {"kind": value}
        return value
    return chance.choice(ODD)
