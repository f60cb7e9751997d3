"""What more devices gave: throughput, efficiency, the share of communication, and whether the losses are those of one.

All from records of a ``scale`` plan: layouts were run in rounds, so ratios are paired within a round.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from trainmark.analysis.parity import Pair, Rounding, curve_of, judge
from trainmark.analysis.scale import Agreement, LayoutResult
from trainmark.analysis.statistics import Estimate, median, median_interval, paired_difference
from trainmark.analysis.summary import summarize
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record, Spread

AGREEMENT_STEPS = 100
"""That losses are held against each other for: later, rounding alone may take some trainings anywhere."""
LayoutKey = tuple[int, int]
"""Copies, and stages of each."""


def results(records: Sequence[Record], rounding: Rounding | None) -> tuple[LayoutResult, ...]:
    """Each layout among ``records``, fewest devices first.

    Args:
        records: of one plan; those of single ranks are passed over.
        rounding: of the arithmetic that losses are held to; None where they need not agree.
    """
    wholes = [record for record in records if record.group.spread and record.group.rank is None]
    plain = [record for record in wholes if record.group.trial is None]
    together = _by_layout(record for record in plain if _spread(record).all_reduce)
    apart = _by_layout(record for record in plain if not _spread(record).all_reduce)
    alone = together.get((1, 1), [])
    nudged = [record for record in wholes if record.group.trial is not None]
    return tuple(
        _result(key, together[key], apart.get(key, []), alone, nudged, rounding)
        for key in sorted(together, key=lambda key: (key[0] * key[1], key))
    )


def _result(
    key: LayoutKey,
    runs: list[Record],
    apart: list[Record],
    alone: list[Record],
    nudged: list[Record],
    rounding: Rounding | None,
) -> LayoutResult:
    data, pipeline = key
    ranks = data * pipeline
    ended = _ended(runs)
    seconds = {number: _step_seconds(record) for number, record in ended.items()}
    rates = {number: _batch(record) / seconds[number] for number, record in ended.items()}
    base = {number: _batch(record) / _step_seconds(record) for number, record in _ended(alone).items()}
    apart_seconds = {number: _step_seconds(record) for number, record in _ended(apart).items()}
    broken = next((record for record in (*runs, *apart) if record.outcome.status != "ok"), None)
    return LayoutResult(
        data=data,
        pipeline=pipeline,
        ranks=ranks,
        runs=len(ended),
        failed=sum(record.outcome.status != "ok" for record in (*runs, *apart)),
        batch=_batch(runs[0]),
        samples_per_second=_median(rates.values()),
        step_seconds=_median(seconds.values()),
        efficiency=_ratio(rates, base, ranks),
        communication=_share(apart_seconds, seconds),
        agreement=_agreement(runs, alone, nudged, rounding) if ranks > 1 and rounding else None,
        reason=f"{broken.outcome.status}: {broken.outcome.reason}" if broken else None,
        caveats=tuple(caveat for caveat in Caveat if any(caveat in record.caveats for record in runs)),
    )


def _agreement(runs: list[Record], alone: list[Record], nudged: list[Record], rounding: Rounding) -> Agreement | None:
    """The earliest round that both made."""
    by_round = {record.round: record for record in alone}
    pairs = [(record, by_round[record.round]) for record in runs if record.round in by_round]
    if not pairs:
        return None
    run, reference = min(pairs, key=lambda pair: pair[0].round)
    same_seed = [record for record in nudged if record.seed == reference.seed]
    several = curve_of("several", run, steps=AGREEMENT_STEPS)
    return _agreed(judge(several, curve_of("one", reference, *same_seed, steps=AGREEMENT_STEPS), rounding))


def _agreed(pair: Pair) -> Agreement:
    nothing = None if pair.steps else "there is no step to hold against another"
    reason = pair.reason or nothing
    return Agreement(pair.steps, pair.largest_difference, pair.tolerance, pair.parts_at_step, reason is None, reason)


def _by_layout(records: Iterable[Record]) -> dict[LayoutKey, list[Record]]:
    found: dict[LayoutKey, list[Record]] = {}
    for record in records:
        spread = _spread(record)
        found.setdefault((spread.data, spread.pipeline), []).append(record)
    return found


def _spread(record: Record) -> Spread:
    assert record.group.spread is not None
    return record.group.spread


def _ended(records: Iterable[Record]) -> dict[int, Record]:
    """By round, those that have a step's time."""
    return {record.round: record for record in records if record.outcome.status == "ok" and record.epochs}


def _step_seconds(record: Record) -> float:
    """Median of the steady stretches."""
    seconds, steps = summarize(record).epoch_seconds, record.epochs[0].steps
    return seconds / steps if seconds and steps else math.nan


def _batch(record: Record) -> int:
    """Examples of a step, as it was planned."""
    size = record.workload.spec["batches"]["size"]
    if isinstance(size, int):
        return size
    return record.dataset.train_examples if record.dataset else 0


def _median(values: Iterable[float]) -> Estimate | None:
    known = list(values)
    middle = median(known)
    if middle is None:
        return None
    bounds = median_interval(known)
    return Estimate(middle, *bounds) if bounds else Estimate(middle, None, None)


def _ratio(these: Mapping[int, float], those: Mapping[int, float], ranks: int) -> Estimate | None:
    logs = _logarithms({number: rate / ranks for number, rate in these.items()}, those)
    return paired_difference(logs).exponential() if logs else None


def _share(without: Mapping[int, float], whole: Mapping[int, float]) -> Estimate | None:
    """What is missing of the whole, as a share of it."""
    logs = _logarithms(without, whole)
    if not logs:
        return None
    left = paired_difference(logs).exponential()
    if left.low is None or left.high is None:
        return Estimate(1 - left.value, None, None)
    return Estimate(1 - left.value, 1 - left.high, 1 - left.low)


def _logarithms(these: Mapping[int, float], those: Mapping[int, float]) -> list[float]:
    """Of the ratios of what both have, as far as there is something of both."""
    both = [(these[number], those[number]) for number in these if number in those]
    return [math.log(this / that) for this, that in both if this > 0 and that > 0]
