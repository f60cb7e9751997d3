"""What was seen of a command from outside, as a table."""

from __future__ import annotations

from trainmark import units
from trainmark.analysis.outside import Observation
from trainmark.report.table import Cell, Column, Row, Table


def outside_table(title: str, found: tuple[Observation, ...]) -> Table:
    """One line for each observation."""
    return Table(
        title=title,
        conditions=("measured from outside, so step time can't be broken down",),
        columns=(Column("observed"), Column("value", "right"), Column("meaning")),
        rows=tuple(Row((Cell(each.what, tone="strong"), Cell(_value(each)), Cell(each.words))) for each in found),
        notes=() if found else ("No observations: the command ended too soon, or failed at once.",),
    )


def _value(observation: Observation) -> str:
    if observation.unit == "share":
        return units.percent(observation.value, 0)
    return units.ratio(observation.value) if observation.unit == "times" else observation.unit
