"""Where runs were made, with what, and what differs between the machines."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.analysis.differences import Difference, facts
from trainmark.analysis.machines import MachineOf
from trainmark.record.record import Record
from trainmark.report.table import Cell, Column, Table, TableRow


def machines_table(records: Sequence[Record], machine_of: MachineOf | None = None) -> Table:
    """All that is known, a column for each machine; what is not the same everywhere is marked."""
    known = facts(records, machine_of)
    whats = [Cell(f"{each.what} ≠", tone="doubtful") if each.differs else Cell(each.what) for each in known]
    marked = any(each.differs for each in known) and len(known[0].values) > 1
    said = ("What differs is marked with ≠.",) if marked else ()
    return _table("Machines and versions", "what", known, whats, said)


def differences_table(differences: Sequence[Difference]) -> Table:
    """What is not the same on every machine, for above their numbers."""
    whats = [Cell(each.what, tone="strong") for each in differences]
    return _table("What differs between the machines", "", differences, whats)


def _table(
    title: str, column: str, found: Sequence[Difference], whats: Sequence[Cell], conditions: tuple[str, ...] = ()
) -> Table:
    machines = list(found[0].values) if found else []
    return Table(
        title=title,
        conditions=conditions,
        columns=(Column(column), *(Column(machine) for machine in machines)),
        rows=tuple(
            TableRow(
                (what, *(Cell(each.values[machine]) for machine in machines)),
                data={"what": each.what, **({"differs": each.differs} if column else {}), **each.values},
            )
            for each, what in zip(found, whats, strict=True)
        ),
    )
