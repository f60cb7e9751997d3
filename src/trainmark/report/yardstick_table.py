"""A comparison beside devices that are known."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from trainmark import units
from trainmark.analysis.results import Beside, Comparison
from trainmark.report.table import Cell, Column, Row, Table


def yardstick_table(comparison: Comparison, rows: Sequence[Beside]) -> Table:
    """One row for each group and known device."""
    return Table(
        title="Beside devices that are known",
        conditions=(),
        columns=(
            Column("measured here"),
            Column("samples\nper s", "right"),
            Column("known device"),
            Column("samples\nper s", "right"),
            Column("here / there", "right"),
            Column("how", optional=True),
        ),
        rows=tuple(_row(comparison, row) for row in rows),
        notes=(
            *(_sentence(comparison, row) for row in rows if row.same_model),
            *(dict.fromkeys(f"{row.device}: {row.source}" for row in rows)),
        ),
    )


def _row(comparison: Comparison, row: Beside) -> Row:
    group = comparison.groups[row.position]
    side = f"{group.key.workload} {group.key.backend} {group.key.style} {group.key.device}"
    return Row(
        (
            Cell(side, tone="strong"),
            Cell(units.rate(group.samples_per_second, "").strip()),
            Cell(row.device, "the same model" if row.same_model else ""),
            Cell(units.rate(row.samples_per_second, "").strip()),
            Cell(units.percent(row.ratio, 0) if row.same_model else units.ratio(row.ratio)),
            Cell(row.how, tone="dim"),
        ),
        data=dataclasses.asdict(row),
    )


def _sentence(comparison: Comparison, row: Beside) -> str:
    key = comparison.groups[row.position].key
    return (
        f"{key.device} reaches {units.percent(row.ratio, 0)} of the reference of the same model in {key.workload}, "
        f"{key.backend} {key.style}."
    )
