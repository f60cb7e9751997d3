"""Results of a sweep: its trials, best first, from their records alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from trainmark.analysis.grouping import grouped
from trainmark.record.caveats import Caveat
from trainmark.record.facts import tokens_of
from trainmark.record.record import Record, Status

Value = str | int | float | bool


@dataclass(frozen=True)
class TrialResult:
    """One trial.

    Args:
        values: values of the varied hyper-parameters.
        test_accuracy, test_loss: final values; a text has no accuracy.
        training_seconds: duration of the epochs; parallel trials slow each other down.
        record: id of its record.
        caveats: caveats of its record.
    """

    trial: int
    values: Mapping[str, Value]
    outcome: Status
    reason: str | None
    test_accuracy: float | None
    test_loss: float | None
    training_seconds: float | None
    record: str
    caveats: tuple[Caveat, ...] = ()


@dataclass(frozen=True)
class Sweep:
    """The trials of one workload.

    Args:
        side: their backend, style, device and precision.
        grid: the values of each key, in the order of the trials.
        trials: best first, by test accuracy, then by test loss; trials stopped early follow
            complete ones, and failed ones are last.
        best: number of the best trial; None if none finished.
        side_by_side: whether trials were trained at the same time.
        is_text: whether the examples are windows of a text, without an accuracy.
        machines: names of the machines.
    """

    workload: str
    dataset: str
    side: str
    grid: Mapping[str, tuple[Value, ...]]
    trials: tuple[TrialResult, ...]
    best: int | None
    side_by_side: bool
    is_text: bool
    machines: tuple[str, ...]


def is_trial(record: Record) -> bool:
    """Return whether the record belongs to a sweep."""
    return record.group.kind == "sweep" and record.group.trial is not None


def without_trials(records: Iterable[Record]) -> list[Record]:
    """Return the records with comparable speeds.

    Trials of a sweep differ in what they train, and may run in parallel.
    """
    return [record for record in records if not is_trial(record)]


def sweeps(records: Iterable[Record]) -> list[Sweep]:
    """Return every sweep among ``records``, in the order measured.

    A repeated trial counts once: a finished one is preferred, then the newest.
    """
    trials = [record for record in records if is_trial(record) and record.group.rank is None]
    ordered = sorted(trials, key=attrgetter("created", "id"))
    return [_sweep(each) for each in grouped(ordered, attrgetter("group.id")).values()]


def _sweep(every: list[Record]) -> Sweep:
    """Return the sweep of these records, the newest of which is last."""
    finished_last = sorted(every, key=lambda record: record.outcome.status == "ok")
    trials = {record.group.trial or 0: record for record in finished_last}
    records = [trials[number] for number in sorted(trials)]
    first = records[0]
    results = sorted((_result(record) for record in records), key=_rank)
    points = [record.group.values or {} for record in records]
    keys = dict.fromkeys(itertools.chain.from_iterable(points))
    backend = first.backend
    precision = "" if backend.precision in (None, "fp32") else f" {backend.precision}"
    return Sweep(
        workload=first.workload.name,
        dataset=first.dataset.name if first.dataset else "",
        side=f"{backend.name} {backend.style} {first.device.id}{precision}{_layout(first)}",
        grid={
            key: _ordered(dict.fromkeys(point[key] for point in points if key in point))
            for key in keys
        },
        trials=tuple(results),
        best=results[0].trial if results[0].outcome == "ok" else None,
        side_by_side=any(Caveat.SIDE_BY_SIDE in record.caveats for record in records),
        is_text=tokens_of(first) is not None,
        machines=tuple(dict.fromkeys(record.machine.name for record in records)),
    )


def _layout(record: Record) -> str:
    spread = record.group.spread
    return f", {spread.data} copies × {spread.pipeline} stages each" if spread else ""


def _ordered(values: Iterable[Value]) -> tuple[Value, ...]:
    """Sort numbers by size; keep the order of anything else."""
    listed = list(values)
    numbers = [
        value for value in listed if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    return tuple(sorted(numbers)) if len(numbers) == len(listed) else tuple(listed)


def _result(record: Record) -> TrialResult:
    return TrialResult(
        trial=record.group.trial or 0,
        values=dict(record.group.values or {}),
        outcome=record.outcome.status,
        reason=record.outcome.reason,
        test_accuracy=None if tokens_of(record) else record.final.test_accuracy,
        test_loss=record.final.test_loss,
        training_seconds=record.final.training_seconds,
        record=record.id,
        caveats=tuple(record.caveats),
    )


def _rank(result: TrialResult) -> tuple[bool, bool, float, float, int]:
    """Return a sort key, smaller is better; unknown values and NaN come last."""
    return (
        result.outcome != "ok",
        Caveat.STOPPED_EARLY in result.caveats,
        -_known(result.test_accuracy, -math.inf),
        _known(result.test_loss, math.inf),
        result.trial,
    )


def _known(value: float | None, otherwise: float) -> float:
    return otherwise if value is None or math.isnan(value) else value
