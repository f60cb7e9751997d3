"""Find which records were made on the same machine.

Host names are not enough: virtual machines and containers share them, and a machine keeps its name
when its processor is replaced.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TypeAlias

from trainmark.analysis.grouping import grouped
from trainmark.record.record import Machine, Record

MEMORY_STEP = 1.1
"""Ratio of memory from which machines are different.

Less may be memory that a kernel or the firmware reserves.
"""


@dataclass(frozen=True)
class MachineLabel:
    """A machine among several.

    Args:
        title: host name, followed by a number if others share it.
        labels: labels of the record that has the most.
    """

    title: str
    labels: str | None


MachineOf: TypeAlias = Callable[[Record], MachineLabel]
"""Returns the machine of a record among others."""
Splitter: TypeAlias = Callable[[Sequence[Machine]], list[list[Machine]]]


def tell_apart(records: Iterable[Record]) -> MachineOf:
    """Return a function that gives the machine of each of ``records``.

    Machines with the same name are numbered in the order of their first runs.

    Two records are of one machine if all properties known in both are equal. One with unknown
    properties (such as no label) belongs to the others of its name if these all agree, and is
    separate if they don't.
    """
    ordered = sorted(records, key=attrgetter("created", "round", "id"))
    # Each machine is here once, in the order of the first runs.
    every = {_seen(record.machine): record.machine for record in ordered}
    apart = [list(every.values())] if every else []
    labels: set[str] = set()
    for machine in every.values():
        labels |= machine.labels.keys()
    splitters: list[Splitter] = [
        partial(_split, of=_hardware),
        _by_memory,
        partial(_split, of=attrgetter("identity")),
        *map(_by_label, sorted(labels)),
    ]
    for split in splitters:
        apart = list(itertools.chain.from_iterable(map(split, apart)))
    order = list(every)
    apart.sort(key=lambda machines: order.index(_seen(machines[0])))
    labels_of: dict[Hashable, MachineLabel] = {}
    names = [machines[0].name for machines in apart]
    for number, machines in enumerate(apart):
        name = names[number]
        title = name if names.count(name) == 1 else f"{name} ({names[: number + 1].count(name)})"
        best = max(machines, key=lambda machine: len(machine.labels))
        labels_of.update(
            (_seen(machine), MachineLabel(title, best.labelled)) for machine in machines
        )

    def machine_of(record: Record) -> MachineLabel:
        return labels_of[_seen(record.machine)]

    return machine_of


def _seen(machine: Machine) -> Hashable:
    """Return the properties that identify a machine, without those that change between two runs."""
    return (
        _hardware(machine),
        machine.memory_bytes,
        machine.identity,
        frozenset(machine.labels.items()),
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
        if not machine.memory_bytes:
            return None
        return sum(machine.memory_bytes >= step for step in steps)

    return _split(machines, size)


def _by_label(key: str) -> Splitter:
    def label(machine: Machine) -> str | None:
        return machine.labels.get(key)

    return partial(_split, of=label)


def _split(machines: Sequence[Machine], of: Callable[[Machine], Hashable]) -> list[list[Machine]]:
    """Split by value; machines with an unknown value join the others if these all agree."""
    if len({*map(of, machines)} - {None}) <= 1:
        return [list(machines)]
    return list(grouped(machines, of).values())
