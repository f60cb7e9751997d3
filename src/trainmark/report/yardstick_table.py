"""A table of the comparison with reference devices."""

from __future__ import annotations

import dataclasses

from trainmark import units
from trainmark.analysis.results import Comparison, DeviceReference
from trainmark.report.table import Cell, Field, Table, table_of, text_of, toned


def yardstick_table(comparison: Comparison) -> Table:
    """Return a table with a row per group and reference device."""

    def side(row: DeviceReference) -> Cell:
        key = comparison.groups[row.position].key
        return Cell(f"{key.workload} {key.backend} {key.style} {key.device}", tone="strong")

    def measured_rate(row: DeviceReference) -> str:
        return units.rate(comparison.groups[row.position].samples_per_second)

    return table_of(
        comparison.references,
        (
            Field("measured here", side),
            Field("samples\nper s", measured_rate, "right"),
            Field("reference device", _device),
            Field("samples\nper s", text_of("samples_per_second", units.rate), "right"),
            Field("here / there", _ratio, "right"),
            Field("how", toned("how", "dim"), optional=True),
        ),
        title="Compared with reference devices",
        notes=(
            *(_sentence(comparison, row) for row in comparison.references if row.same_model),
            *(dict.fromkeys(f"{row.device}: {row.source}" for row in comparison.references)),
        ),
        data=dataclasses.asdict,
    )


def _device(row: DeviceReference) -> Cell:
    return Cell(row.device, "same model" if row.same_model else "")


def _ratio(row: DeviceReference) -> str:
    return units.percent(row.ratio, 0) if row.same_model else units.ratio(row.ratio)


def _sentence(comparison: Comparison, row: DeviceReference) -> str:
    key = comparison.groups[row.position].key
    return (
        f"{key.device} reaches {units.percent(row.ratio, 0)} of the reference for the same model "
        f"in {key.workload}, {key.backend} {key.style}."
    )
