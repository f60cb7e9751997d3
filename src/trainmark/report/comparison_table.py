"""A comparison as tables, one per workload."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from itertools import chain

from trainmark import units
from trainmark.analysis.grouping import grouped
from trainmark.analysis.named_metrics import METRIC_MARGIN
from trainmark.analysis.results import Comparison, GroupResult, MedianInterval, Speedup
from trainmark.record.caveats import Caveat
from trainmark.record.facts import Key
from trainmark.report.conditions import share_of_peak, split, threads, when_measured
from trainmark.report.flat import flat_group
from trainmark.report.length import length, which_epoch
from trainmark.report.metric_words import learning_cell, metric_cell
from trainmark.report.side_columns import (
    HARDWARE,
    GroupRow,
    same_side,
    side_columns,
    side_columns_by_machine,
)
from trainmark.report.table import (
    Cell,
    Field,
    Table,
    Tone,
    number_of,
    span,
    table_of,
)

SPEED_TONES: dict[str, Tone] = {
    "faster": "good",
    "slower": "bad",
    "same": "plain",
    "unclear": "doubtful",
}
_LEARNING_TONES: dict[str, Tone] = {"same": "plain", "differs": "bad", "unclear": "doubtful"}


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Return one table per workload, in the order measured, with compared groups adjacent."""
    return [_table(comparison, positions) for positions in comparison.by_workload]


def _table(comparison: Comparison, positions: Sequence[int]) -> Table:
    families = grouped(positions, lambda position: comparison.groups[position].reference)
    starts = {members[0] for members in families.values()}
    rows = [
        GroupRow(comparison.groups[each], each, comparison.is_reference(each))
        for each in chain.from_iterable(families.values())
    ]
    groups = [row.group for row in rows]
    by_machine = comparison.by == "machine"
    conditions, facts = split(groups, HARDWARE if by_machine else ())
    met = dict.fromkeys(chain.from_iterable(group.caveats for group in groups))
    marks = {caveat: str(place) for place, caveat in enumerate(met, 1)}
    first = side_columns_by_machine(groups, facts) if by_machine else side_columns(groups, facts)
    return table_of(
        rows,
        [*first, *_fields(comparison, rows, marks, whole=by_machine)],
        title=title_of(groups),
        conditions=(*filter(None, [same_side(groups)]), *conditions),
        notes=(
            *_notes(comparison, rows),
            *(f"{mark} {c.value}: {c.meaning}" for c, mark in marks.items()),
        ),
        data=lambda row: flat_group(row.group, row.position),
        starts_section=lambda row: row.position in starts,
    )


def title_of(groups: Sequence[GroupResult]) -> str:
    """Return the workload and the length of its longest run."""
    longest = max(groups, key=lambda group: (group.steps, group.epochs))
    words = length(longest.epochs, longest.steps, by_steps=longest.by_steps)
    if not words:
        ran = "slices" if any(group.runs for group in groups) else "no finished run"
        has_slices = any(each.speedup.of == "slice" for each in groups)
        whole = longest.process_seconds.median is not None and not has_slices
        words = "whole processes" if whole else ran
    return f"{longest.key.workload} · {words}"


def _fields(
    comparison: Comparison, rows: Sequence[GroupRow], marks: dict[Caveat, str], *, whole: bool
) -> list[Field[GroupRow]]:
    """Return the columns worth showing, the most important first.

    Args:
        whole: don't drop the columns of epochs.
    """
    groups = [row.group for row in rows]
    text = any(group.tokens for group in groups)
    margin = comparison.loss_margin if text else 100 * comparison.learning_margin
    fields: list[Field[GroupRow]] = [
        Field("speed-up", _speedup, "right", meaning=_of_speedups(comparison, rows)),
        Field(f"{'tokens' if text else 'samples'}\nper s", _rate, "right"),
        Field(
            "process",
            _process,
            "right",
            meaning=f"whole command, {_RANGE}",
        ),
        Field("to\ntarget", _to_target, "right", meaning=_of_targets(groups)),
        Field("cost", number_of("group.cost.money", units.money), "right", meaning=_PRICED),
        *(_LEARNT_OF_TEXT if text else _learnt(groups)),
        *_named(groups),
        Field("learns", _learning, "right", not whole, _of_learning(groups, margin)),
        Field(
            "epoch",
            _epoch,
            "right",
            not whole,
            f"{which_epoch(groups)}, {_RANGE}",
        ),
        Field("of\npeak", _of_peak, "right", True, _of_peaks(groups)),
        Field(
            "energy",
            number_of("group.cost.joules", units.joules),
            "right",
            True,
            _of_energy(groups),
        ),
        Field("runs", lambda row: Cell(_runs(row.group), value=row.group.runs), "right", True),
        Field(
            "training",
            number_of("group.training_seconds", units.seconds),
            "right",
            True,
            _TRAINING,
        ),
        Field("compile", number_of("group.compile_seconds", units.seconds), "right", True),
        Field("train\nloss", number_of("group.train_loss", units.loss), "right", True),
        Field(
            "notes",
            lambda row: Cell(" ".join(marks[c] for c in row.group.caveats), tone="doubtful"),
        ),
    ]
    # A column with nothing but "reference" is not worth showing.
    plain = [dataclasses.replace(row, is_reference=False) for row in rows]
    shown = [field for field in fields if _has_values(field, plain)]
    if any(group.failed for group in groups) or len({_runs(group) for group in groups}) > 1:
        return shown
    return [field for field in shown if field.title != "runs"]


def _has_values(field: Field[GroupRow], rows: Sequence[GroupRow]) -> bool:
    """Whether a column has any value."""
    return any(field.cell(row).text not in ("", units.MISSING) for row in rows)


def _named(groups: Sequence[GroupResult]) -> tuple[Field[GroupRow], ...]:
    """Return the column of the figure that --metric names, if there is one."""
    name = next((group.metric.name for group in groups if group.metric is not None), None)
    if name is None:
        return ()
    return (Field(name, _metric, "right", meaning=_OF_METRIC),)


def _metric(row: GroupRow) -> Cell:
    return metric_cell(row.group.metric)


_OF_METRIC = "last value, mean over runs, with its 95 % interval."


def _of_learning(groups: Sequence[GroupResult], margin: float) -> str:
    """Return what the column of learning holds."""
    metrics = [group.metric for group in groups if group.metric is not None]
    if metrics:
        within = f"{100 * METRIC_MARGIN:g} %"
        points = ", in points" if all(each.is_percentage for each in metrics) else ""
        return (
            f"last {metrics[0].name} minus the reference's{points}, with its 95 % interval; "
            f"same: within ±{within}."
        )
    text = any(group.tokens for group in groups)
    figure = "loss minus the reference's" if text else "accuracy minus the reference's, in points"
    return f"final {figure}, with its 95 % interval; same: within ±{margin:g}."


def _learnt(groups: Sequence[GroupResult]) -> tuple[Field[GroupRow], ...]:
    tested = any(group.test_accuracy is not None for group in groups)
    return (
        Field(
            "test\nacc.", number_of("group.test_accuracy", units.percent), "right", meaning=_MEAN
        ),
        Field("train\nacc.", number_of("group.train_accuracy", units.percent), "right", tested),
    )


_LEARNT_OF_TEXT: tuple[Field[GroupRow], ...] = (
    Field(
        "test\nloss",
        number_of("group.test_loss", units.loss),
        "right",
        meaning="median over runs.",
    ),
    Field(
        "perplexity",
        number_of("group.test_perplexity", units.loss),
        "right",
        True,
        "exp(test loss).",
    ),
)
_MEAN = "mean over runs."
_RANGE = "median over runs, with the range below it (95 % interval from 6 runs)."
_PRICED = "of one run's training epochs, at the given price."
_TRAINING = "all epochs, including the first; without evaluation and compilation."


def _runs(group: GroupResult) -> str:
    """Return ``5``, or ``4/5`` if one of five failed."""
    return f"{group.runs}/{group.runs + group.failed}" if group.failed else str(group.runs)


def _rate(row: GroupRow) -> Cell:
    rate = row.group.tokens_per_second or row.group.samples_per_second
    return Cell(units.rate(rate), value=rate)


def _process(row: GroupRow) -> Cell:
    return _timed(row.group.process_seconds)


def _epoch(row: GroupRow) -> Cell:
    return _timed(row.group.epoch_seconds)


def _timed(spread: MedianInterval) -> Cell:
    bounds = ""
    if spread.low is not None:
        bounds = span(units.seconds(spread.low), units.seconds(spread.high))
    return Cell(units.seconds(spread.median), bounds, value=spread.median)


def _to_target(row: GroupRow) -> Cell:
    group = row.group
    reached = group.reached
    if reached is None:
        return Cell(units.MISSING)
    times = reached.seconds, reached.low, reached.high
    time, low, high = (units.seconds(each).replace("inf", "never") for each in times)
    bounds = "" if low in (units.MISSING, "never") else f"{span(low, high)}, "
    return Cell(
        time, f"{bounds}{reached.runs} of {group.trainings + group.failed}", value=reached.seconds
    )


def _of_peak(row: GroupRow) -> Cell:
    known = row.group.efficiency
    return Cell(units.MISSING) if known is None else Cell(share_of_peak(known), value=known.mfu)


def _speedup(row: GroupRow) -> Cell:
    speedup = row.group.speedup
    if row.is_reference:
        return Cell("reference", tone="dim", value=1.0)
    if speedup.ratio is None:
        return Cell(units.MISSING)
    words = f"{units.ratio(speedup.ratio)} {speed_verdict(row.group)}"
    return Cell(words, bounds_of(speedup), SPEED_TONES[speedup.verdict], speedup.ratio)


def bounds_of(speedup: Speedup) -> str:
    """Return the known bounds of a speed-up: ``1.15–1.23×``, ``≥ 1.81×`` or nothing."""
    if speedup.low is not None and speedup.high is not None:
        return f"{units.significant(speedup.low)}–{units.ratio(speedup.high)}"
    if speedup.at_least is None:
        return ""
    if speedup.verdict == "faster":
        return f"≥ {units.ratio(speedup.low)}"
    return f"≤ {units.ratio(speedup.high)}"


def _learning(row: GroupRow) -> Cell:
    learning = row.group.learning
    if row.is_reference and learning.quantity:
        return Cell("reference", tone="dim", value=0.0)
    if row.is_reference or learning.difference is None:
        return Cell(units.MISSING)
    if learning.better is not None:
        tone = _LEARNING_TONES[learning.verdict]
        metric = row.group.metric
        in_points = metric is not None and metric.is_percentage
        return learning_cell(learning, _without_interval(row.group), tone, in_points=in_points)
    words = _lower if row.group.tokens else _points
    points = words(learning.difference)
    tone = _LEARNING_TONES[learning.verdict]
    if learning.low is None or learning.high is None:
        return Cell(_without_interval(row.group), points, tone, learning.difference)
    bounds = f"{words(learning.low)}…{words(learning.high)}"
    return Cell(f"{points} {learning.verdict}", bounds, tone, learning.difference)


def speed_verdict(group: GroupResult) -> str:
    """Return the verdict on the speed-up, or why there is none."""
    has_bound = group.speedup.low is not None or group.speedup.high is not None
    return group.speedup.verdict if has_bound else _without_interval(group)


def _without_interval(group: GroupResult) -> str:
    """Return what replaces the verdict if there is no interval."""
    return "too few" if Caveat.FEW_ROUNDS in group.caveats else "unclear"


def _points(difference: float) -> str:
    """Return a difference of accuracies in percentage points, with its sign."""
    return f"{100 * difference:+.2f}".replace("-", "−")


def _lower(difference: float) -> str:
    """Return a loss that is lower by ``difference``, relative to the reference's, with its sign."""
    return f"{0.0 - difference:+.4f}".replace("-", "−")


def _notes(comparison: Comparison, rows: Sequence[GroupRow]) -> tuple[str, ...]:
    """Return notes on what could not be compared, and on what is cheapest."""
    groups = [row.group for row in rows]
    lines = [] if all(group.runs for group in groups) else [_NOTHING_FINISHED]
    compared = any(row.group.reference is not None and not row.is_reference for row in rows)
    if not compared and comparison.by is not None and len(groups) > 1:
        lines.append(f"No two groups differ only in {comparison.by}, so nothing is compared.")
    if comparison.by == "machine" and len({bool(group.key.device_name) for group in groups}) > 1:
        lines.append(
            "CPUs are compared with CPUs, accelerators with accelerators; omit --by to compare all."
        )
    if comparison.baseline is not None and any(group.reference is None for group in groups):
        lines.append(
            f"Groups without a speed-up have no counterpart with {'='.join(comparison.baseline)}."
        )
    if any(group.efficiency and group.efficiency.disturbed for group in groups):
        lines.append(_AT_MOST)
    lines += _cheapest(groups)
    references = {group.reference for group in groups if group.reference is not None}
    if not all(comparison.groups[reference].learns for reference in references):
        lines.append("A reference does not learn, so ratios to it have no verdict.")
    return tuple(lines)


def _of_speedups(comparison: Comparison, rows: Sequence[GroupRow]) -> str:
    """Return what speed-ups are ratios of, and what their verdicts mean."""
    how = how_compared([row.group for row in rows if not row.is_reference])
    return (
        f"{how} same: within ±{100 * comparison.margin:g} %; unclear: the interval allows both; "
        "too few: a verdict needs 3 rounds, or 2 if the difference is obvious."
    )


def how_compared(groups: Sequence[GroupResult]) -> str:
    """Return what the speed-ups are ratios of, how runs are matched, what the intervals cover."""
    epoch = which_epoch(groups)
    found = dict.fromkeys(
        _how_compared(group, epoch) for group in groups if group.speedup.ratio is not None
    )
    return f"reference / this {'; or '.join(found)}".rstrip() + "."


def _how_compared(group: GroupResult, epoch: str) -> str:
    of = "whole processes" if group.speedup.of == "process" else epoch
    if group.speedup.of == "slice":
        how = "from interleaved slices"
        interval = "its 97 % interval over rounds"
    elif Caveat.UNPAIRED not in group.caveats:
        how = f"of {of}, paired by round (not the ratio of the medians)"
        interval = "its 95 % interval"
    else:
        how = f"of {of}, ratio of geometric means (not of the medians)"
        interval = _WELCH
    if group.speedup.at_least is not None:
        return f"{how}, with a bound from two rounds that agree on an obvious difference"
    has_interval = group.speedup.low is not None and group.speedup.high is not None
    return f"{how}, with {interval}" if has_interval else f"{how}, without an interval"


_WELCH = "Welch's 95 % interval, which covers variation between runs, not between days or machines"


_AT_MOST = (
    "≤: other programs used the machine or the device while its peak was measured; the "
    "true share may be lower."
)
_NOTHING_FINISHED = "A row without figures has no finished run; trainmark show RECORD shows why."


def _of_targets(groups: Sequence[GroupResult]) -> str:
    targets = dict.fromkeys(str(group.reached.target) for group in groups if group.reached)
    return (
        f"training until {', '.join(targets)}, without compilation and evaluation; median of all "
        "runs (a miss counts as never); below it lowest and highest (with 6 and more runs: 95 % "
        "interval), and how many reached it."
    )


def _of_peaks(groups: Sequence[GroupResult]) -> str:
    """Return which peaks the shares refer to."""
    several = [of for of in _PLACES if len({of(group.key) for group in groups}) > 1]
    peaks: dict[str, None] = {}
    for group in groups:
        key = group.key
        known = group.efficiency
        if known is None:
            continue
        promised = known.datasheet_flops_per_second
        sheet = f"; datasheet: {units.flops(promised)}/s" if promised else ""
        place = "".join(f", {of(key)}" for of in several)
        described = (
            f"{units.flops(known.peak_flops_per_second)}/s that matrix products of "
            f"{known.measured_by} reach on {key.device_name or key.device} in "
            f"{key.precision}{place}, {when_measured(known)}{sheet}"
        )
        peaks[described] = None
    return f"share of the {', or of the '.join(peaks)}."


def _machine(key: Key) -> str:
    return f"machine {key.machine}"


_PLACES: tuple[Callable[[Key], str], ...] = (threads, _machine)
"""What else a peak depends on, shown if the groups differ in it."""


def _of_energy(groups: Sequence[GroupResult]) -> str:
    sources = dict.fromkeys(
        group.cost.source for group in groups if group.cost.source and group.cost.joules
    )
    return f"of one run's training epochs, {', '.join(sources)}."


def _cheapest(groups: Sequence[GroupResult]) -> list[str]:
    """Return a note on the device with the lowest cost per sample, if there are several."""
    priced = [group for group in groups if group.cost.money_per_million_samples is not None]
    able = [group for group in priced if group.learns]
    if len({(group.key.machine, group.key.device, group.key.device_name) for group in able}) < 2:
        return []
    best = min(able, key=lambda group: group.cost.money_per_million_samples or 0.0)
    several = len({group.key.machine for group in able}) > 1
    where = best.key.words("device") + (f" of {best.key.machine}" if several else "")
    return [
        f"cheapest: {best.key.backend} {best.key.words('style')} on {where}, "
        f"{units.money(best.cost.money_per_million_samples)} per million samples."
    ]
