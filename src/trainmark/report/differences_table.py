"""What differs between machines, as a table above their numbers."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.analysis.differences import Difference
from trainmark.report.table import Cell, Column, Row, Table


def differences_table(differences: Sequence[Difference]) -> Table:
    """One row for each thing that is not the same on every machine."""
    machines = list(differences[0].values)
    return Table(
        title="What differs between the machines",
        conditions=(),
        columns=(Column(""), *(Column(machine) for machine in machines)),
        rows=tuple(
            Row(
                (Cell(each.what, tone="strong"), *(Cell(each.values[machine]) for machine in machines)),
                data={"what": each.what, **each.values},
            )
            for each in differences
        ),
        notes=(),
    )
