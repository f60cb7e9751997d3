"""Published figures beside measured ones, as tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from trainmark import units
from trainmark.analysis.agreement import PublishedResult, TimingResult, ValueResult
from trainmark.record.facts import Key
from trainmark.report.flat import flat_timing, flat_value
from trainmark.report.table import Cell, Column, Row, Table, Tone, span

_TONES: dict[str, Tone] = {"agrees": "good", "differs": "bad", "not judged": "doubtful"}
_NAMES = {
    "step_loss": "total loss",
    "step_l2_loss": "L2 part of the loss",
    "epoch_seconds": "an epoch",
    "training_seconds": "training",
    "samples_per_second": "throughput",
}


def published_tables(results: Iterable[PublishedResult]) -> list[Table]:
    """Two tables a published run and group, its figures and its timings; one line for what nobody measured."""
    results = list(results)
    several = len({result.key.machine for result in results if result.key is not None}) > 1
    tables = []
    for result in results:
        if result.key is not None:
            heading = _heading(result, result.key, several=several)
            tables.append(_values_table(result, heading))
            if result.timings:
                tables.append(_timings_table(result, heading))
    unmeasured: dict[str, list[PublishedResult]] = {}
    for result in results:
        if result.key is None:
            unmeasured.setdefault(result.workload, []).append(result)
    return tables + [_unmeasured_table(workload, missing) for workload, missing in unmeasured.items()]


def _values_table(result: PublishedResult, heading: str) -> Table:
    return Table(
        title=f"{heading}: compared with the published figures",
        conditions=tuple(filter(None, (result.source, result.note and f"Mind: {result.note}."))),
        columns=(
            Column("figure"),
            Column("at"),
            Column("of"),
            Column("on"),
            Column("published", "right"),
            Column("tolerance", "right"),
            Column("measured", "right"),
            Column("verdict"),
        ),
        rows=tuple(Row(_value_cells(value), flat_value(result, value)) for value in result.values),
    )


def _value_cells(value: ValueResult) -> tuple[Cell, ...]:
    accuracy = value.quantity.endswith("accuracy")
    printed = units.percent if accuracy else _as_printed
    measured = units.percent(value.measured) if accuracy else units.loss(value.measured)
    bounded = value.low is not None or value.high is not None
    return (
        Cell(_name(value.quantity), tone="strong"),
        Cell(value.where),
        Cell(value.statistic),
        Cell(value.device or "any"),
        Cell(printed(value.published), value=value.published),
        Cell(span(printed(value.low), printed(value.high)) if bounded else units.MISSING),
        Cell(measured, value=value.measured),
        Cell(value.verdict, value.reason, _TONES[value.verdict]),
    )


def _as_printed(value: float | None) -> str:
    """A published loss with the digits it was printed with, no more."""
    if value is None:
        return units.MISSING
    return "NaN" if math.isnan(value) else f"{value:g}"


def _timings_table(result: PublishedResult, heading: str) -> Table:
    return Table(
        title=f"{heading}: time",
        conditions=("Not judged: the hardware differs, and the published times include what the last column says.",),
        columns=(
            Column("timing"),
            Column("on"),
            Column("published", "right"),
            Column("measured", "right"),
            Column("as fast", "right"),
            Column("published hardware; what its times include"),
        ),
        rows=tuple(Row(_timing_cells(timing), flat_timing(result, timing)) for timing in result.timings),
    )


def _timing_cells(timing: TimingResult) -> tuple[Cell, ...]:
    def show(value: float | None) -> str:
        return units.rate(value, "samples/s") if timing.quantity == "samples_per_second" else units.seconds(value)

    return (
        Cell(_name(timing.quantity), tone="strong"),
        Cell(timing.device),
        Cell(show(timing.published), value=timing.published),
        Cell(show(timing.measured), value=timing.measured),
        Cell(units.ratio(timing.ratio), value=timing.ratio),
        Cell(timing.hardware, timing.includes),
    )


def _unmeasured_table(workload: str, missing: Sequence[PublishedResult]) -> Table:
    """No rows: nothing stands beside these figures, so they are named and no more."""
    names = ", ".join(f"{result.run!r}" for result in missing)
    return Table(
        title=f"{workload}: published, but not measured here",
        conditions=(f"no run of {names} is among these. Run: trainmark run {workload} --published",),
        columns=(),
        rows=(),
    )


def _heading(result: PublishedResult, key: Key, *, several: bool) -> str:
    """``several`` machines have to be told apart."""
    machine = f" of {key.machine}" if several else ""
    return f"{result.workload}, {result.run}, {key.backend} {key.style} on {key.device}{machine}"


def _name(quantity: str) -> str:
    return _NAMES.get(quantity, quantity.replace("_", " "))
