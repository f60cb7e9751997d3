"""Results of a scaling study: throughput, efficiency, communication, agreement of the losses.

All results come from records of a ``scale`` plan: round 0 trained every layout to the end in
float64, for its losses; in the other rounds the layouts were interleaved, so they are compared by
slices.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from operator import attrgetter

from trainmark.analysis.comparison import MARGIN, by_slices, ordered
from trainmark.analysis.grouping import grouped
from trainmark.analysis.results import MedianInterval, Speedup
from trainmark.analysis.scale import Agreement, LayoutResult
from trainmark.analysis.slices import compare_slices
from trainmark.analysis.statistics import SLICES_CONFIDENCE, Estimate
from trainmark.record.caveats import Caveat
from trainmark.record.facts import tokens_of
from trainmark.record.record import Record, Spread

AGREEMENT_STEPS = 100
"""Number of steps whose losses are compared; later, rounding alone may change some trainings."""
AGREEMENT_BOUND = 1e-9
"""Largest relative difference of two losses in float64 that counts as rounding.

Adding in another order changes them by 1e-15, and a chaotic optimiser amplifies that by a few
orders of magnitude at most in 100 steps. A mistake, such as adding gradients up without averaging
them, changes them by 1e-3 or more.
"""
LayoutKey = tuple[int, int]
"""Numbers of copies and of stages per copy."""


def results(records: Sequence[Record]) -> tuple[LayoutResult, ...]:
    """Return the result of each layout in ``records``, fewest devices first.

    Args:
        records: records of one plan; those of single ranks are ignored.
    """
    wholes = [record for record in records if record.group.spread and record.group.rank is None]
    together = _by_layout(record for record in wholes if _spread(record).all_reduce)
    apart = _by_layout(record for record in wholes if not _spread(record).all_reduce)
    alone = together.get((1, 1), [])
    keys = sorted(together, key=lambda key: (key[0] * key[1], key))
    return tuple(_result(key, together[key], apart.get(key, []), alone) for key in keys)


def _result(
    key: LayoutKey, runs: list[Record], apart: list[Record], alone: list[Record]
) -> LayoutResult:
    data, pipeline = key
    ranks = data * pipeline
    speedup, found = _against(alone, runs)
    together, _ = _against(apart, runs)
    seconds = [_step_seconds(run) for run in _timed(runs)]
    pace = _median([_batch(runs[0]) / each for each in seconds])
    tokens = tokens_of(runs[0])
    broken = [record for record in (*runs, *apart) if record.outcome.status != "ok"]
    efficiency = _interval_of(speedup)
    ratio_without = _interval_of(together)
    caveats = found.union(*(record.caveats for record in runs))
    return LayoutResult(
        data=data,
        pipeline=pipeline,
        ranks=ranks,
        runs=len(seconds),
        failed=len(broken),
        batch=_batch(runs[0]),
        samples_per_second=pace,
        tokens_per_second=pace.mapped(lambda rate: rate * tokens) if pace and tokens else None,
        step_seconds=_median(seconds),
        speedup=speedup,
        efficiency=efficiency and efficiency.mapped(lambda ratio: ratio / ranks),
        communication=ratio_without and ratio_without.mapped(lambda ratio: 1 - ratio),
        agreement=_agreement(runs, alone) if ranks > 1 else None,
        reason=f"{broken[0].outcome.status}: {broken[0].outcome.reason}" if broken else None,
        caveats=ordered(caveats),
    )


def _agreement(runs: list[Record], alone: list[Record]) -> Agreement | None:
    run = _round_0(runs)
    reference = _round_0(alone)
    if run is None or reference is None:
        return None
    pairs = list(zip(run.step_losses, reference.step_losses, strict=False))[:AGREEMENT_STEPS]
    differences = [abs(a - b) / (max(abs(a), abs(b)) or 1.0) for a, b in pairs]
    apart = [step for step, each in enumerate(differences) if not each <= AGREEMENT_BOUND]
    parts_at = apart[0] if apart else None
    broken = [each for each in (reference, run) if each.outcome.status != "ok"]
    reason = None
    if parts_at is not None:
        reason = f"they differ from step {parts_at} on"
    elif broken:
        which = "one device" if broken[0] is reference else "several devices"
        reason = f"{which}: {broken[0].outcome.status}, {broken[0].outcome.reason}"
    elif not differences:
        reason = "there are no steps to compare"
    largest = max(differences, default=None)
    return Agreement(len(differences), largest, AGREEMENT_BOUND, parts_at, reason is None, reason)


def _round_0(records: Iterable[Record]) -> Record | None:
    return next((record for record in records if not record.round), None)


def _step_seconds(run: Record) -> float:
    return statistics.median(each.seconds / each.timed_steps for each in run.slices)


def _by_layout(records: Iterable[Record]) -> dict[LayoutKey, list[Record]]:
    return grouped(records, attrgetter("group.spread.data", "group.spread.pipeline"))


def _spread(record: Record) -> Spread:
    assert record.group.spread is not None
    return record.group.spread


def _timed(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record.outcome.status == "ok" and record.slices]


def _against(
    reference: Iterable[Record], these: Iterable[Record]
) -> tuple[Speedup | None, set[Caveat]]:
    sliced = compare_slices(_timed(reference), _timed(these))
    if sliced is None:
        return None, set()
    return by_slices(sliced, MARGIN, SLICES_CONFIDENCE, learns=True)


def _batch(record: Record) -> int:
    """Return the planned number of examples per step."""
    batches = record.workload.view.batches
    if batches is not None and batches.size != "full":
        return batches.size
    return record.dataset.train_examples if record.dataset else 0


def _median(values: Sequence[float]) -> Estimate | None:
    found = MedianInterval.of(values)
    return None if found.median is None else Estimate(found.median, found.low, found.high)


def _interval_of(speedup: Speedup | None) -> Estimate | None:
    if speedup is None or speedup.ratio is None:
        return None
    return Estimate(speedup.ratio, speedup.low, speedup.high)
