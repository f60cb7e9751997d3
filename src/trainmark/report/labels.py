"""What tells groups apart, in as few words as do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trainmark.analysis.groups import Key
from trainmark.record.record import NOT_TOLD, NOTHING_VARIED, Record
from trainmark.report.conditions import threads

_LONGEST = 60

_ALWAYS: tuple[Callable[[Key], str], ...] = (
    lambda key: key.backend,
    lambda key: "" if key.style == NOTHING_VARIED else key.style,
    lambda key: "" if key.device == NOT_TOLD else key.device,
    lambda key: key.layout or "",
)


def side_of(record: Record) -> str:
    """What was trained or run, by whom and where, on one line; of a command what it was told."""
    told = (record.backend.style, record.device.id)
    words = [each for each in told if each not in (NOTHING_VARIED, NOT_TOLD)]
    return " ".join([record.workload.name, *([] if record.process else [record.backend.name]), *words])


_WHERE_NEEDED: tuple[tuple[Callable[[Key], str], tuple[str, ...]], ...] = (
    (threads, ()),
    (lambda key: key.precision or "", ()),
    (lambda key: f"program {key.program}" if key.program else "", ()),
    (lambda key: f"on {key.machine}", ()),
    (lambda key: key.device_name or "", ("device",)),
    (lambda key: f"python {key.python}", ()),
    (lambda key: key.version or "", ("backend", "python")),
    (lambda key: key.protocol, ()),
    (lambda key: f"{key.dataset}, {key.train_examples or 0:,} examples", ()),
    (lambda key: f"memory limit {key.memory_fraction}" if key.memory_fraction else "", ()),
    (lambda key: f"weights from {key.weights_from}" if key.weights_from else "", ()),
    (lambda key: key.cpu or "", ("machine",)),
    (lambda key: f"{key.cores} cores", ("machine",)),
)
"""Each with the facts from which it follows: where one of these differs, it need not be said."""


def labels(keys: Sequence[Key]) -> list[str]:
    """A name for each, no two alike: backend, style and device, and whatever else is needed to tell them apart."""
    parts = list(_ALWAYS)
    for of, _ in _WHERE_NEEDED:
        if len({_joined(key, parts) for key in keys}) == len(keys):
            break
        if len({of(key) for key in keys}) > 1:
            parts.append(of)
    names = [_short(_joined(key, parts)) for key in keys]
    return [name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names, 1)]


def apart(these: Key, those: Key) -> tuple[str, str, str]:
    """Names for two groups, of all that differs, and what they share of the rest: `` with torch fast``, `` on cpu``."""
    pairs = [(of(these), of(those)) for of in _ALWAYS]
    told = [pair for pair in pairs if pair[0] != pair[1]]
    for of, given in _WHERE_NEEDED:
        if of(these) != of(those) and all(getattr(these, name) == getattr(those, name) for name in given):
            told.append((of(these), of(those)))
    here, there = (_short(" ".join(filter(None, (pair[side] for pair in told)))) for side in (0, 1))
    *how, where, _ = (a if a == b else "" for a, b in pairs)
    shared = " ".join(filter(None, how))
    said = (f" with {shared}" if shared else "") + (f" on {where}" if where else "")
    return (here or "this", there or "that", said)


def _joined(key: Key, parts: Sequence[Callable[[Key], str]]) -> str:
    return " ".join(word for of in parts if (word := of(key)))


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
