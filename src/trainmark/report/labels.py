"""Short labels that tell groups apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trainmark.record.facts import Key
from trainmark.record.record import Record
from trainmark.report.conditions import CONDITIONS, SIDE

_LONGEST = 60


def side_of(record: Record) -> str:
    """Return the record's workload, backend, style and device on one line."""
    backend = None if record.process else record.backend.name
    return " ".join(
        filter(None, (record.workload.name, backend, record.backend.style, record.device.id))
    )


_ALWAYS: tuple[Callable[[Key], str], ...] = (*SIDE.values(), lambda key: key.layout or "")
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
_WHERE_NEEDED = sorted(
    (condition for condition in CONDITIONS if condition.title != "layout"),
    key=lambda condition: (
        _FIRST.index(condition.title) if condition.title in _FIRST else len(_FIRST)
    ),
)


def labels(keys: Sequence[Key]) -> list[str]:
    """Return a unique name for each: backend, style and device, and whatever else is needed to tell
    them apart.
    """
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
    """Return names for two groups, of all that differs, and what they share, such as `` with torch
    fast on cpu``.
    """
    pairs = [(of(these), of(those)) for of in _ALWAYS]
    told = [pair for pair in pairs if pair[0] != pair[1]]
    for condition in _WHERE_NEEDED:
        pair = condition.label(these), condition.label(those)
        if pair[0] != pair[1] and all(
            getattr(these, name) == getattr(those, name) for name in condition.follows
        ):
            told.append(pair)
    here, there = (_short(" ".join(filter(None, (pair[side] for pair in told)))) for side in (0, 1))
    *how, where, _ = (a if a == b else "" for a, b in pairs)
    shared = " ".join(filter(None, how))
    said = (f" with {shared}" if shared else "") + (f" on {where}" if where else "")
    return (here or "this", there or "that", said)


def _joined(key: Key, parts: Sequence[Callable[[Key], str]]) -> str:
    return " ".join(word for of in parts if (word := of(key)))


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
