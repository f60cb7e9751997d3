"""Where runs were made, with what; what is not the same everywhere is marked."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.analysis.differences import facts
from trainmark.record.record import Record
from trainmark.report.table import Cell, Column, Row, Table


def machines_table(records: Sequence[Record]) -> Table:
    """One row for each thing that is known, one column for each machine."""
    known = facts(records)
    machines = list(known[0].values) if known else []
    marked = len(machines) > 1 and any(fact.differs for fact in known)
    return Table(
        title="Machines and versions",
        conditions=("What differs is marked with ≠.",) if marked else (),
        columns=(Column("what"), *(Column(machine) for machine in machines)),
        rows=tuple(
            Row(
                (
                    Cell(f"{fact.what} ≠" if fact.differs else fact.what, tone="doubtful" if fact.differs else "plain"),
                    *(Cell(fact.values[machine]) for machine in machines),
                ),
                data={"what": fact.what, "differs": fact.differs, **fact.values},
            )
            for fact in known
        ),
    )
