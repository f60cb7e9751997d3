"""Find which records were made on the same machine. Host names are not enough: virtual machines and
containers share them, and a machine keeps its name when its processor is replaced.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from trainmark.analysis.grouping import grouped
from trainmark.record.record import Machine, Record

MEMORY_STEP = 1.1
"""Ratio of memory from which machines are different; less may be memory reserved by a kernel or
firmware."""


@dataclass(frozen=True)
class Told:
    """A machine among several.

    Args:
        title: host name, followed by a number if others share it.
        labels: labels of the record that has the most.
    """

    title: str
    labels: str | None


MachineOf: TypeAlias = Callable[[Record], Told]
"""Returns the machine of a record among others."""
Splitter: TypeAlias = Callable[[Sequence[Machine]], list[list[Machine]]]


def tell_apart(records: Iterable[Record]) -> MachineOf:
    """Return a function that gives the machine of each of ``records``; numbers follow the order of
    their first runs.

    Two records are of one machine if all properties known in both are equal. One with unknown
    properties (such as no label) belongs to the others of its name if these all agree, and is
    separate if they don't.
    """
    ordered = sorted(records, key=lambda record: (record.created, record.round, record.id))
    # each once, in that order
    every = {_seen(record.machine): record.machine for record in ordered}
    apart = [list(every.values())] if every else []
    labels = sorted({key for machine in every.values() for key in machine.tags})
    by_identity: Splitter = partial(_split, of=lambda machine: machine.identity)
    splitters: list[Splitter] = [
        partial(_split, of=_hardware),
        _by_memory,
        by_identity,
        *map(_by_label, labels),
    ]
    for split in splitters:
        apart = [part for machines in apart for part in split(machines)]
    first = {seen: number for number, seen in enumerate(every)}
    apart.sort(key=lambda machines: first[_seen(machines[0])])
    told: dict[Hashable, Told] = {}
    names = [machines[0].name for machines in apart]
    for number, machines in enumerate(apart):
        name = names[number]
        title = name if names.count(name) == 1 else f"{name} ({names[: number + 1].count(name)})"
        best = max(machines, key=lambda machine: len(machine.tags))
        told.update((_seen(machine), Told(title, best.labelled)) for machine in machines)
    return lambda record: told[_seen(record.machine)]


def _seen(machine: Machine) -> Hashable:
    """Return the properties that identify a machine, without those that change between two runs."""
    return (
        _hardware(machine),
        machine.memory_bytes,
        machine.identity,
        frozenset(machine.tags.items()),
    )


def _hardware(machine: Machine) -> Hashable:
    return (
        machine.name,
        machine.cpu,
        machine.architecture,
        machine.usable_cores,
        machine.cpu_quota,
    )


def _by_memory(machines: Sequence[Machine]) -> list[list[Machine]]:
    sizes = sorted({machine.memory_bytes for machine in machines if machine.memory_bytes})
    steps = [above for below, above in itertools.pairwise(sizes) if above > MEMORY_STEP * below]

    def size(machine: Machine) -> int | None:
        return sum(machine.memory_bytes >= step for step in steps) if machine.memory_bytes else None

    return _split(machines, size)


def _by_label(key: str) -> Splitter:
    return partial(_split, of=lambda machine: machine.tags.get(key))


def _split(machines: Sequence[Machine], of: Callable[[Machine], Hashable]) -> list[list[Machine]]:
    """Split by value; machines with an unknown value join the others if these all agree."""
    known = {value for machine in machines if (value := of(machine)) is not None}
    if len(known) <= 1:
        return [list(machines)]
    return list(grouped(machines, of).values())
