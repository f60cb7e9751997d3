"""Short labels that tell groups apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trainmark.record.facts import Key
from trainmark.record.record import Record
from trainmark.report.conditions import CONDITIONS, SIDE, Condition

_LONGEST = 60
"""Maximum length of a label, in characters."""


def side_of(record: Record) -> str:
    """Return the record's workload, backend, style and device on one line."""
    backend = None if record.process else record.backend.name
    parts = (record.workload.name, backend, record.backend.style, record.device.id)
    return " ".join(filter(None, parts))


def _layout(key: Key) -> str:
    return key.layout or ""


_ALWAYS: tuple[Callable[[Key], str], ...] = (*SIDE.values(), _layout)
"""Facts that are in every label."""
_FIRST = (
    "threads",
    "precision",
    "program",
    "machine",
    "device name",
    "python",
    "version",
    "protocol",
    "dataset",
)
"""Titles of the conditions that labels try first, in this order."""


def _rank(condition: Condition) -> int:
    """Return the position of a condition in ``_FIRST``; others come last."""
    return _FIRST.index(condition.title) if condition.title in _FIRST else len(_FIRST)


_WHERE_NEEDED = sorted(
    (condition for condition in CONDITIONS if condition.title != "layout"), key=_rank
)
"""Facts that are in a label only if they distinguish groups."""


def labels(keys: Sequence[Key]) -> list[str]:
    """Return a unique name for each: backend, style, device and whatever else tells them apart."""
    parts = list(_ALWAYS)
    for condition in _WHERE_NEEDED:
        if len({_joined(key, parts) for key in keys}) == len(keys):
            break
        if len({condition.label(key) for key in keys}) > 1:
            parts.append(condition.label)
    names = [_short(_joined(key, parts)) for key in keys]
    return [
        name if names.count(name) == 1 else f"{name} ({number})"
        for number, name in enumerate(names, 1)
    ]


def apart(these: Key, those: Key) -> tuple[str, str, str]:
    """Return names for two groups, of all that differs, and what they share.

    What they share is text such as `` with torch fast on cpu``.
    """
    pairs = [(of(these), of(those)) for of in _ALWAYS]
    differing = [pair for pair in pairs if pair[0] != pair[1]]
    for condition in _WHERE_NEEDED:
        pair = condition.label(these), condition.label(those)
        implied = any(getattr(these, name) != getattr(those, name) for name in condition.follows)
        if pair[0] != pair[1] and not implied:
            differing.append(pair)
    this = _short(" ".join(a for a, _ in differing if a))
    that = _short(" ".join(b for _, b in differing if b))
    *how, where, _ = (a if a == b else "" for a, b in pairs)
    shared = " ".join(filter(None, how))
    common = (f" with {shared}" if shared else "") + (f" on {where}" if where else "")
    return (this or "this", that or "that", common)


def _joined(key: Key, parts: Sequence[Callable[[Key], str]]) -> str:
    return " ".join(filter(None, (words_of(key) for words_of in parts)))


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
