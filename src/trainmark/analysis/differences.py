"""Differences between the compared machines, lest a driver's effect be mistaken for a GPU's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trainmark.analysis.grouping import grouped
from trainmark.analysis.machines import MachineOf, tell_apart
from trainmark.record.facts import FACTS, Fact
from trainmark.record.record import Record

UNKNOWN = "not known"


@dataclass(frozen=True)
class Difference:
    """One property of every machine.

    Args:
        what: name of the property, for the user.
        values: values by machine; several on one machine are joined.
    """

    what: str
    values: dict[str, str]

    @property
    def differs(self) -> bool:
        """Whether the values differ between machines."""
        return len(set(self.values.values())) > 1


def differences(records: Iterable[Record]) -> tuple[Difference, ...]:
    """Return all properties that differ between the machines of ``records``."""
    return tuple(fact for fact in facts(records) if fact.differs)


def _version_of(package: str) -> Fact:
    """Return the version of a package as a property of the machine."""
    return Fact(lambda record: record.python.packages.get(package), package)


def facts(records: Iterable[Record], machine_of: MachineOf | None = None) -> tuple[Difference, ...]:
    """Return all known properties of the machines of ``records``, whether they differ or not."""
    records = list(records)
    machine_of = machine_of or tell_apart(records)
    by_machine = grouped(records, lambda record: machine_of(record).title)
    packages: set[str] = set()
    for record in records:
        packages |= record.python.packages.keys()
    known = [fact for fact in FACTS.values() if fact.machine]
    known += [_version_of(name) for name in sorted(packages)]
    found = []
    for fact in known:
        values = {machine: _values(fact, runs) for machine, runs in by_machine.items()}
        if set(values.values()) != {UNKNOWN}:
            found.append(Difference(fact.title, values))
    return tuple(found)


def _values(fact: Fact, records: Iterable[Record]) -> str:
    """Return the known values of a fact in these records, as text."""
    values = {fact.text(record) for record in records}
    return ", ".join(sorted(filter(None, values))) or UNKNOWN
