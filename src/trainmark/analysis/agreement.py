"""``--published``: published figures next to measured ones, and whether each agrees."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from trainmark.analysis.groups import Repeats, group_records
from trainmark.analysis.published_values import chains_of, read_value
from trainmark.analysis.statistics import median
from trainmark.analysis.student import t_quantile
from trainmark.analysis.summary import summarize
from trainmark.data.catalog import find
from trainmark.errors import RecordError
from trainmark.record.caveats import Caveat
from trainmark.record.facts import Key
from trainmark.record.record import Record
from trainmark.workload import catalog
from trainmark.workload.decode import Misfit
from trainmark.workload.published import PublishedRun, PublishedTiming, PublishedValue
from trainmark.workload.spec import Workload

Agreement = Literal["agrees", "differs", "not judged"]
DeviceKind = Literal["cpu", "gpu"]
WRONGLY_DIFFERS = 0.01
"""Share of right runs of a workload of which a figure may lie outside its band."""


@dataclass(frozen=True)
class ValueResult:
    """One published figure next to the measured one.

    Args:
        where: position in a run, for the user.
        statistic: which repeats it covers.
        device: kind of device it was published for; None is any.
        published: NaN if the published run failed; None if only the bounds are known.
        measured: None if there is nothing to compare.
        reason: why it is not judged; empty if it is.
    """

    quantity: str
    where: str
    statistic: str
    device: DeviceKind | None
    published: float | None
    low: float | None
    high: float | None
    measured: float | None
    verdict: Agreement
    reason: str


@dataclass(frozen=True)
class TimingResult:
    """One published duration or rate next to the measured one.

    It is never judged, since the hardware differs.

    Args:
        ratio: measured speed / published speed; above 1 is faster.
        hardware: hardware of the published figure.
        includes: what the published seconds include, which may differ from trainmark's.
    """

    quantity: str
    device: DeviceKind
    published: float
    measured: float | None
    ratio: float | None
    hardware: str
    includes: str


@dataclass(frozen=True)
class PublishedResult:
    """One published run next to a group that followed its schedule.

    Args:
        key: key of the group; None if none followed the schedule.
    """

    workload: str
    source: str
    run: str
    note: str
    key: Key | None
    values: tuple[ValueResult, ...]
    timings: tuple[TimingResult, ...]


def trainings(records: Iterable[Record]) -> list[Record]:
    """Return the records that trained a workload.

    Commands and rounds of slices have no published figures.
    """
    workloads = [each for each in records if each.process is None]
    return [each for each in workloads if each.epochs or each.outcome.status != "ok"]


def agree(records: Iterable[Record]) -> tuple[PublishedResult, ...]:
    """Return every published run of the workloads, next to each group with its schedule.

    A figure published for the other kind of device is compared too, since learning does not depend
    on the device, unless the same figure was published with bounds for the group's own kind.

    Raises:
        RecordError: this version can't read the workload of a record.
    """
    groups = group_records(records)
    results = []
    for workload in _workloads(groups):
        if workload.published is None:
            continue
        for run in workload.published.runs:
            scheduled = workload.scheduled_as(run)
            followers: list[Repeats | None] = [
                group for group in groups if _follows(group, scheduled, run)
            ]
            for group in followers or [None]:
                results.append(_beside(workload, workload.published.source, run, group))
    return tuple(results)


def _workloads(groups: Iterable[Repeats]) -> list[Workload]:
    """Return each workload once, as defined in the catalogue.

    A record's schedule may have been changed by options of ``run``, and could match a published run
    that it did not follow. A workload of the same name that computes something else is the user's,
    and is used as recorded.
    """
    found: dict[tuple[str, str], Workload] = {}
    for group in groups:
        name, step_fingerprint, _ = group.key.same_work
        if (name, step_fingerprint) in found or not group.records:
            continue
        own = _decoded(group.records[0])
        listed = catalog.find(name) if name in catalog.names() else own
        is_listed = listed.step_fingerprint == step_fingerprint
        found[name, step_fingerprint] = listed if is_listed else own
    return list(found.values())


def _decoded(record: Record) -> Workload:
    try:
        return record.workload.workload
    except Misfit as misfit:
        raise RecordError(
            f"the workload in record {record.id} can't be read",
            expected=misfit.expected,
            found=misfit.found,
            fix="It was written by another version of trainmark; compare without --published.",
        ) from misfit


def _follows(group: Repeats, scheduled: Workload, run: PublishedRun) -> bool:
    same_work = (scheduled.name, scheduled.step_fingerprint, scheduled.schedule_fingerprint)
    if group.key.same_work != same_work or not group.records:
        return False
    return run.only_on in (None, group.records[0].device.kind)


def _beside(
    workload: Workload, source: str, run: PublishedRun, group: Repeats | None
) -> PublishedResult:
    values = list(run.values)
    timings = list(run.timings)
    if group is not None:
        kind = _kind(group)
        values = [value for value in values if not _displaced(value, run, kind)]
        timings = [timing for timing in timings if _concerns(timing, run, kind)]
    figures = sum(map(_bounded, values))
    return PublishedResult(
        workload=workload.name,
        source=source,
        run=run.name,
        note=run.note,
        key=group.key if group else None,
        values=tuple(_judge(value, run, workload, group, figures) for value in values),
        timings=tuple(_time(timing, group) for timing in timings),
    )


def _judge(
    value: PublishedValue,
    run: PublishedRun,
    workload: Workload,
    group: Repeats | None,
    figures: int,
) -> ValueResult:
    measured = None
    reason = "nothing measured"
    if group:
        measured, reason = read_value(chains_of(group.records, run), value, run)
        reason = reason or _unfit(value, run, workload, group)
    verdict: Agreement = "not judged"
    low, high = band(value, figures)
    if measured is not None and not reason:
        above = low is None or low <= measured
        below = high is None or measured <= high
        verdict = "agrees" if above and below else "differs"
    return ValueResult(
        quantity=value.quantity,
        where=value.where,
        statistic=_statistic(value, run, group),
        device=value.device,
        published=math.nan if value.value == "nan" else value.value,
        low=low,
        high=high,
        measured=measured,
        verdict=verdict,
        reason=reason,
    )


def band(value: PublishedValue, figures: int) -> tuple[float | None, float | None]:
    """Return the band of a right run: the prediction interval of its seeds, if there are any.

    At most :data:`WRONGLY_DIFFERS` of right runs lie outside any of the ``figures`` of a run
    (Bonferroni). If the published value, which is random as well, lies outside, the band is widened
    to it.
    """
    seeds = value.seeds
    confidence = 1 - WRONGLY_DIFFERS / max(figures, 1)
    if seeds is None:
        return value.low, value.high
    half = t_quantile(confidence, seeds.count - 1) * seeds.sd * math.sqrt(1 + 1 / seeds.count)
    published = value.value if isinstance(value.value, float) else seeds.mean
    low = max(min(seeds.mean - half, published), 0.0)
    high = max(seeds.mean + half, published)
    return low, min(high, 1.0) if value.quantity.endswith("accuracy") else high


def _unfit(value: PublishedValue, run: PublishedRun, workload: Workload, group: Repeats) -> str:
    """Return why the tolerance does not apply to the measured value; empty if it does."""
    is_partial = any(Caveat.PARTIAL_DATASET in record.caveats for record in group.records)
    if group.key.dataset != workload.dataset:
        return f"trained on {group.key.dataset}, published for {workload.dataset}"
    precisions = run.precisions or ("fp32",)
    if group.key.precision not in precisions:
        return f"trained in {group.key.precision}, published for {' and '.join(precisions)}"
    if group.key.weights_from is not None:
        return "started from another record's weights"
    if value.needs_whole_dataset and is_partial:
        whole = find(workload.dataset).examples("train")
        if not (value.is_of_training and group.key.train_examples == whole):
            return f"needs the whole {'training set' if value.is_of_training else 'dataset'}"
    if value.value == "nan":
        return "the published run failed"
    if not _bounded(value):
        return "no tolerance known"
    return ""


def _statistic(value: PublishedValue, run: PublishedRun, group: Repeats | None) -> str:
    if value.repeat is not None:
        return f"repeat {value.repeat}"
    repeats = run.repeats if run.protocol == "continued" or group is None else len(group.records)
    return f"median of {repeats}" if repeats > 1 else "one run"


def _kind(group: Repeats) -> DeviceKind:
    return "cpu" if group.records[0].device.kind == "cpu" else "gpu"


def _displaced(value: PublishedValue, run: PublishedRun, kind: DeviceKind) -> bool:
    """Return whether the same figure was published, with bounds, for this kind of device."""
    if value.device in (None, kind):
        return False
    twins = [twin for twin in run.values if twin.device == kind and _place(twin) == _place(value)]
    return any(_bounded(twin) or not _bounded(value) for twin in twins)


def _place(value: PublishedValue) -> tuple[object, ...]:
    return value.quantity, value.epochs, value.steps, value.repeat


def _bounded(value: PublishedValue) -> bool:
    return value.low is not None or value.high is not None or value.seeds is not None


def _concerns(timing: PublishedTiming, run: PublishedRun, kind: DeviceKind) -> bool:
    kinds = {each.device for each in run.timings if each.quantity == timing.quantity}
    return timing.device == kind or kind not in kinds


def _time(timing: PublishedTiming, group: Repeats | None) -> TimingResult:
    records = group.records if group else ()
    measured = median(getattr(summarize(record), timing.quantity) for record in records)
    ratio = None
    if measured:
        is_rate = timing.quantity == "samples_per_second"
        ratio = measured / timing.value if is_rate else timing.value / measured
    return TimingResult(
        timing.quantity,
        timing.device,
        timing.value,
        measured,
        ratio,
        timing.hardware,
        timing.includes,
    )
