"""Tables of published and measured figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from trainmark import units
from trainmark.analysis.agreement import PublishedResult, TimingResult, ValueResult
from trainmark.analysis.grouping import grouped
from trainmark.record.facts import Key
from trainmark.report.flat import flat_published
from trainmark.report.table import (
    Cell,
    Field,
    Table,
    Tone,
    number,
    number_of,
    span,
    table_of,
    text_of,
)

_TONES: dict[str, Tone] = {"agrees": "good", "differs": "bad", "not judged": "doubtful"}
_NAMES = {
    "step_loss": "total loss",
    "step_l2_loss": "L2 part of the loss",
    "epoch_seconds": "an epoch",
    "training_seconds": "training",
    "samples_per_second": "throughput",
}


def published_tables(results: Iterable[PublishedResult]) -> list[Table]:
    """Return tables of figures and of timings per published run and group; unmeasured runs last."""
    results = list(results)
    several = len({result.key.machine for result in results if result.key is not None}) > 1
    tables: list[Table] = []
    for result in results:
        if result.key is not None:
            tables += _measured_tables(result, result.key, several=several)
    without_key = (result for result in results if result.key is None)
    unmeasured = grouped(without_key, lambda result: result.workload)
    tables += [_unmeasured_table(workload, missing) for workload, missing in unmeasured.items()]
    return tables


def _measured_tables(result: PublishedResult, key: Key, *, several: bool) -> Iterator[Table]:
    """Yield the tables of figures and of timings.

    Args:
        result: a published run next to a group.
        key: of the group.
        several: whether the titles name the machine, since there are several.
    """
    machine = f" of {key.machine}" if several else ""
    heading = f"{result.workload}, {result.run}, {key.backend} {key.style} on {key.device}{machine}"
    data = partial(flat_published, result)
    title = f"{heading}: compared with the published figures"
    note = result.note and f"Note: {result.note}."
    yield table_of(
        result.values,
        _VALUE,
        title=title,
        conditions=tuple(filter(None, (result.source, note))),
        data=data,
    )
    if result.timings:
        yield table_of(
            result.timings, _TIMING, title=f"{heading}: time", conditions=(_NOT_JUDGED,), data=data
        )


_NOT_JUDGED = (
    "Not judged: the hardware differs. The last column says what the published times include."
)


def _printed(value: ValueResult) -> Callable[[float | None], str]:
    return units.percent if value.quantity.endswith("accuracy") else _loss


def _loss(value: float | None) -> str:
    """Return a loss with four decimals."""
    if value is None:
        return units.MISSING
    return "NaN" if math.isnan(value) else f"{value:.4f}"


def _tolerance(value: ValueResult) -> str:
    if value.low is None and value.high is None:
        return units.MISSING
    printed = _printed(value)
    return span(printed(value.low), printed(value.high))


def _time(timing: TimingResult, value: float | None) -> Cell:
    rate = timing.quantity == "samples_per_second"
    return Cell(units.rate(value, "samples/s") if rate else units.seconds(value), value=value)


def _quantity(row: ValueResult | TimingResult) -> Cell:
    return Cell(_name(row.quantity), tone="strong")


def _verdict(value: ValueResult) -> Cell:
    return Cell(value.verdict, value.reason, _TONES[value.verdict])


def _hardware(timing: TimingResult) -> Cell:
    return Cell(timing.hardware, timing.includes)


def _unmeasured_table(workload: str, missing: Sequence[PublishedResult]) -> Table:
    """Return a table without rows that names the published runs with no measured counterpart."""
    names = ", ".join(f"{result.run!r}" for result in missing)
    return Table(
        title=f"{workload}: published, but not measured here",
        conditions=(f"no records of {names}. To measure: trainmark run {workload} --published",),
    )


def _name(quantity: str) -> str:
    return _NAMES.get(quantity, quantity.replace("_", " "))


_VALUE: tuple[Field[ValueResult], ...] = (
    Field("figure", _quantity),
    Field("at", text_of("where")),
    Field("of", text_of("statistic")),
    Field("on", lambda value: value.device or "any"),
    Field("published", lambda value: number(value.published, _printed(value)), "right"),
    Field("tolerance", _tolerance, "right"),
    Field("measured", lambda value: number(value.measured, _printed(value)), "right"),
    Field("verdict", _verdict),
)
_TIMING: tuple[Field[TimingResult], ...] = (
    Field("timing", _quantity),
    Field("on", text_of("device")),
    Field("published", lambda timing: _time(timing, timing.published), "right"),
    Field("measured", lambda timing: _time(timing, timing.measured), "right"),
    Field("speed-up", number_of("ratio", units.ratio), "right"),
    Field("published hardware; what its times include", _hardware),
)
