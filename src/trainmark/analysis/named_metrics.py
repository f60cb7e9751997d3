"""The figure that ``measure --metric`` names: its value on each side, and whether they differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainmark.analysis.pairing import match
from trainmark.analysis.results import Learning, MetricResult
from trainmark.analysis.statistics import (
    WHOLE,
    Estimate,
    learning_verdict,
    mean,
    paired_difference,
)
from trainmark.analysis.summary import RunSummary
from trainmark.record.named_metric import NamedMetric

METRIC_MARGIN = 0.01
"""Final values within ±1 % of the reference's mean count as the same.

The scale of such a figure is unknown. Trainmark's own margins are 0.5 points of an accuracy near
one, and 0.02 of a loss of 1 to 2.
"""


def metric_of(
    found: Sequence[NamedMetric | None], *, by_budget: bool = False
) -> MetricResult | None:
    """Return the figure of the runs of a side; None if they were not asked for the same one.

    Args:
        found: the figure in each run.
        by_budget: whether the budget ended one of them.
    """
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    if len({(each.name, each.better) for each in known}) > 1:
        return None
    final = [each for each in known if each.is_final and each.last is not None]
    finite = [each for each in final if each.last is not None and math.isfinite(each.last)]
    lacking = [each for each in known if each.is_final and each.last is None]
    last = _mean_of([each.last for each in finite if each.last is not None])
    single = finite[0] if len(known) == len(finite) == 1 else None
    return MetricResult(
        name=known[0].name,
        better=known[0].better,
        mean=None if last is None else last.value,
        low=None if last is None else last.low,
        high=None if last is None else last.high,
        best=mean(each.best for each in finite),
        best_at=single.best_at if single else None,
        counted_in=single.counted_in if single else None,
        is_percentage=bool(finite) and all(each.is_percentage for each in finite),
        runs=len(finite),
        not_finite=len(final) - len(finite),
        lacking=len(lacking),
        unfinished=len(known) - len(final) - len(lacking),
        by_budget=by_budget,
        example=lacking[0] if lacking else None,
    )


def _mean_of(values: Sequence[float]) -> Estimate | None:
    """Return the mean of values with its interval; None without any."""
    return paired_difference(values, WHOLE) if values else None


def learning_of_reference(metric: MetricResult) -> Learning:
    """Return what a side learns compared with itself."""
    quantity = None if metric.mean is None else metric.name
    return Learning(quantity, 0.0, None, None, "same", metric.better)


def compare_metrics(
    these: Sequence[RunSummary],
    those: Sequence[RunSummary],
    of_these: MetricResult,
    of_those: MetricResult,
) -> Learning:
    """Compare the last values of two sides, as accuracies are compared.

    Without a finite value in each complete run, there is no difference: a run that lacks it may be
    the one that learnt least.

    Args:
        these: the runs of one side.
        those: the runs of its reference.
        of_these: the figure on the first side.
        of_those: the figure on its reference.
    """
    unknown = Learning(of_these.name, None, None, None, "unclear", of_these.better)
    if (of_these.name, of_these.better) != (of_those.name, of_those.better):
        return unknown
    if not (of_these.is_comparable and of_those.is_comparable):
        return unknown
    if of_these.is_percentage is not of_those.is_percentage:
        return unknown
    is_lower = of_these.better == "lower"
    # The first minus the second is above 0 if these have learnt more.
    ends = (those, these) if is_lower else (these, those)
    difference = match(*ends, _read, pairs=True).difference(WHOLE)
    if difference is None:
        return unknown
    margin = METRIC_MARGIN * abs(of_those.mean or 0.0)
    return Learning(
        of_these.name,
        difference.value,
        difference.low,
        difference.high,
        learning_verdict(difference, margin),
        of_these.better,
    )


def _read(run: RunSummary) -> float | None:
    return run.metric
