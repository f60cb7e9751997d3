"""Tables of the machines and versions of runs, and of their differences."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.analysis.differences import Difference, facts
from trainmark.analysis.machines import MachineOf
from trainmark.record.record import Record
from trainmark.report.table import Cell, Field, Table, table_of, toned


def machines_table(records: Sequence[Record], machine_of: MachineOf | None = None) -> Table:
    """Return the table of all known facts, with a column per machine; differences are marked."""
    known = facts(records, machine_of)
    marked = any(each.differs for each in known) and len(known[0].values) > 1
    return table_of(
        known,
        (Field("what", _marked), *_by_machine(known)),
        title="Machines and versions",
        conditions=("Differences are marked with ≠.",) if marked else (),
        data=lambda each: {"what": each.what, "differs": each.differs, **each.values},
    )


def differences_table(differences: Sequence[Difference]) -> Table:
    """Return the table of the differences between machines, to show above the results."""
    return table_of(
        differences,
        (Field("", toned("what", "strong")), *_by_machine(differences)),
        title="Differences between the machines",
        data=lambda each: {"what": each.what, **each.values},
    )


def _marked(fact: Difference) -> Cell:
    return Cell(f"{fact.what} ≠", tone="doubtful") if fact.differs else Cell(fact.what)


def _by_machine(found: Sequence[Difference]) -> list[Field[Difference]]:
    """Return a column with the values of each machine."""
    return [_values_of(machine) for machine in found[0].values] if found else []


def _values_of(machine: str) -> Field[Difference]:
    return Field(machine, lambda difference: difference.values[machine])
