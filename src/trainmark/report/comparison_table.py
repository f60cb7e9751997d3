"""A comparison as tables, one per workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trainmark import units
from trainmark.analysis.results import Comparison, GroupResult, MedianInterval
from trainmark.record.caveats import Caveat
from trainmark.record.facts import Key
from trainmark.report.conditions import split, threads, when_measured
from trainmark.report.flat import flat_group
from trainmark.report.length import length, which_epoch
from trainmark.report.table import Cell, Column, Table, TableRow, Tone, span
from trainmark.report.who import HARDWARE, Shown, same_side, who, who_by_machine

_SPEED_TONES: dict[str, Tone] = {"faster": "good", "slower": "bad", "same": "plain", "unclear": "doubtful"}
_LEARNING_TONES: dict[str, Tone] = {"same": "plain", "differs": "bad", "unclear": "doubtful"}


def comparison_tables(comparison: Comparison) -> list[Table]:
    """One table per workload, in the order measured; with ``by``, compared groups are adjacent."""
    return [_table(comparison, positions) for positions in comparison.works]


def _table(comparison: Comparison, positions: Sequence[int]) -> Table:
    families: dict[int | None, list[int]] = {}
    for position in positions:
        families.setdefault(comparison.groups[position].reference, []).append(position)
    ordered = [position for members in families.values() for position in members]
    groups = [comparison.groups[position] for position in ordered]
    by_machine = comparison.by == "machine"
    conditions, facts = split(groups, HARDWARE if by_machine else ())
    marks = _marks(groups)
    shown = _columns(groups, who_by_machine(groups, facts) if by_machine else who(facts), marks, whole=by_machine)
    starts = {members[0] for members in families.values()}
    return Table(
        title=title_of(groups),
        conditions=(*filter(None, [same_side(groups)] if by_machine else []), *conditions),
        columns=tuple(one.column for one in shown),
        rows=tuple(
            TableRow(
                cells=tuple(one.cell(group, comparison.is_reference(position)) for one in shown),
                data=flat_group(group, position),
                starts_section=position in starts,
            )
            for position, group in zip(ordered, groups, strict=True)
        ),
        notes=(*_explanations(comparison, ordered), *(f"{mark} {c.value}: {c.meaning}" for c, mark in marks.items())),
    )


def title_of(groups: Sequence[GroupResult]) -> str:
    """Workload and length, as far as the longest run came."""
    longest = max(groups, key=lambda group: (group.steps, group.epochs))
    words = length(longest.epochs, longest.steps, by_steps=longest.by_steps)
    none = "whole processes" if longest.key.precision is None else "no finished run"
    return f"{longest.key.workload} · {words or none}"


def _marks(groups: Sequence[GroupResult]) -> dict[Caveat, str]:
    """A number for each caveat of the table, in the order they are met."""
    met = dict.fromkeys(caveat for group in groups for caveat in group.caveats)
    return {caveat: str(number) for number, caveat in enumerate(met, 1)}


def _columns(
    groups: Sequence[GroupResult], who: Sequence[Shown], marks: dict[Caveat, str], *, whole: bool
) -> list[Shown]:
    """The columns worth showing, the most important first; the optional ones give way on a narrow terminal.

    Args:
        whole: pace and accuracy don't give way.
    """
    tested = any(group.test_accuracy is not None for group in groups)
    shown = [
        *who,
        Shown(Column("runs", "right"), lambda group, _: Cell(_runs(group), value=group.runs)),
        Shown(Column("epoch", "right"), lambda group, _: _timed(group.epoch_seconds)),
        Shown(Column("process", "right"), lambda group, _: _timed(group.process_seconds)),
        Shown(Column("samples\nper s", "right", optional=not whole), lambda group, _: _rate(group.samples_per_second)),
        Shown(Column("speed-up", "right"), _speedup),
        Shown(Column("to\ntarget", "right"), lambda group, _: _to_target(group)),
        Shown(Column("of\npeak", "right", optional=True), lambda group, _: _of_peak(group)),
        Shown(Column("energy", "right", optional=True), lambda group, _: _number(group.cost.joules, units.joules)),
        Shown(Column("cost", "right"), lambda group, _: _number(group.cost.money, units.money)),
        Shown(
            Column("test\nacc.", "right", optional=not whole),
            lambda group, _: _number(group.test_accuracy, units.percent),
        ),
        Shown(Column("train\nacc.", "right", optional=tested), lambda g, _: _number(g.train_accuracy, units.percent)),
        Shown(Column("learns", "right"), _learning),
        Shown(Column("notes"), lambda group, _: Cell(" ".join(marks[c] for c in group.caveats), tone="doubtful")),
        Shown(
            Column("training", "right", optional=True), lambda group, _: _number(group.training_seconds, units.seconds)
        ),
        Shown(
            Column("compile", "right", optional=True), lambda group, _: _number(group.compile_seconds, units.seconds)
        ),
        Shown(Column("train\nloss", "right", optional=True), lambda group, _: _number(group.train_loss, units.loss)),
    ]
    return [one for one in shown if any(one.cell(group, False).text not in ("", units.MISSING) for group in groups)]


def _runs(group: GroupResult) -> str:
    """``5``, or ``4/5`` where one of five failed."""
    return f"{group.runs}/{group.runs + group.failed}" if group.failed else str(group.runs)


def _rate(samples_per_second: float | None) -> Cell:
    return Cell(units.rate(samples_per_second, "").strip(), value=samples_per_second)


def _timed(spread: MedianInterval) -> Cell:
    if spread.low is None or spread.high is None:
        return _number(spread.median, units.seconds)
    bounds = span(units.seconds(spread.low), units.seconds(spread.high))
    return Cell(units.seconds(spread.median), bounds, value=spread.median)


def _to_target(group: GroupResult) -> Cell:
    reached = group.reached
    if reached is None:
        return Cell(units.MISSING)
    time = units.seconds(reached.seconds) if reached.runs else "never"
    return Cell(time, f"{reached.runs} of {group.runs + group.failed}", value=reached.seconds)


def _of_peak(group: GroupResult) -> Cell:
    known = group.efficiency
    return Cell(units.MISSING) if known is None else Cell(units.percent(known.mfu, 1), value=known.mfu)


def _number(value: float | None, written: Callable[[float | None], str]) -> Cell:
    return Cell(written(value), value=value)


def _speedup(group: GroupResult, is_reference: bool) -> Cell:
    if is_reference:
        return Cell("reference", tone="dim", value=1.0)
    speedup = group.speedup
    if speedup.ratio is None:
        return Cell(units.MISSING)
    if speedup.low is None or speedup.high is None:
        return Cell(
            f"{units.ratio(speedup.ratio)} {_verdict(group)}", tone=_SPEED_TONES[speedup.verdict], value=speedup.ratio
        )
    text = f"{units.ratio(speedup.ratio)} {speedup.verdict}"
    bounds = f"{units.significant(speedup.low)}–{units.ratio(speedup.high)}"
    return Cell(text, bounds, _SPEED_TONES[speedup.verdict], speedup.ratio)


def _learning(group: GroupResult, is_reference: bool) -> Cell:
    if is_reference:
        return Cell("reference", tone="dim", value=0.0) if group.learning.quantity else Cell(units.MISSING)
    learning = group.learning
    if learning.difference is None:
        return Cell(units.MISSING)
    if learning.low is None:
        points, tone = _points(learning.difference), _LEARNING_TONES[learning.verdict]
        return Cell(_verdict(group), points, tone, learning.difference)
    bounds = f"{_points(learning.low)}…{_points(learning.high)}"
    text = f"{_points(learning.difference)} {learning.verdict}"
    return Cell(text, bounds, _LEARNING_TONES[learning.verdict], learning.difference)


def _verdict(group: GroupResult) -> str:
    """In place of a verdict where there is no interval to base one on."""
    return "too few" if Caveat.FEW_ROUNDS in group.caveats else "unclear"


def _points(difference: float | None) -> str:
    """A difference of accuracies in percentage points, with its sign."""
    if difference is None:
        return units.MISSING
    return f"{100 * difference:+.2f}".replace("-", "−")


def _explanations(comparison: Comparison, positions: Sequence[int]) -> tuple[str, ...]:
    """What the columns mean, and what could not be compared."""
    groups = [comparison.groups[position] for position in positions]
    which = which_epoch(groups)
    lines = [] if all(group.runs for group in groups) else [_NOTHING_FINISHED]
    told = "median over runs, with the range below it (95 % interval from 6 runs)."
    if any(group.epoch_seconds.median is not None for group in groups):
        lines.append(f"epoch: {which}, {told}")
    if any(group.process_seconds.median is not None for group in groups):
        lines.append(f"process: the whole command, {told}")
    if any(group.reference not in (None, position) for position, group in zip(positions, groups, strict=True)):
        margin, points = f"{100 * comparison.margin:g}", f"{100 * comparison.learning_margin:g}"
        lines += [
            f"speed-up: reference / this{_of_what(groups)}, {_how_matched(groups)}",
            f"same: within ±{margin} %; unclear: the interval allows both; too few: a verdict needs 3 rounds.",
            f"learns: final accuracy minus the reference's, 95 % interval in points; same: within ±{points}.",
        ]
    elif comparison.by is not None and len(groups) > 1:
        lines.append(f"No two groups differ only in {comparison.by}, so nothing is compared.")
    if comparison.by == "machine" and len({bool(group.key.device_name) for group in groups}) > 1:
        lines.append("CPUs are compared with CPUs, accelerators with accelerators; without --by, all with one.")
    if comparison.baseline is not None and any(group.reference is None for group in groups):
        lines.append(f"Groups without a speed-up have no counterpart with {'='.join(comparison.baseline)}.")
    lines += _of_targets(groups)
    if any(group.training_seconds is not None for group in groups):
        lines.append("training: all epochs, including the first; without evaluation and compilation.")
    lines += _of_peaks(groups)
    lines += _of_costs(groups)
    references = {group.reference for group in groups if group.reference is not None}
    if any(Caveat.NOT_LEARNING in comparison.groups[reference].caveats for reference in references):
        lines.append("A reference does not learn, so ratios to it have no verdict.")
    return tuple(lines)


def _of_what(groups: Sequence[GroupResult]) -> str:
    """Whether speed-ups are of epochs or processes, if that is not obvious."""
    of = {group.speedup.of for group in groups if group.speedup.ratio is not None}
    if not any(group.process_seconds.median is not None for group in groups):
        return ""
    if of == {"process"}:
        return " of whole processes"
    return " of steady epochs" + (", of whole processes if one side has no epochs" if "process" in of else "")


def _how_matched(groups: Sequence[GroupResult]) -> str:
    """How the two sides are matched, and what the interval covers."""
    if any(group.speedup.of == "slice" for group in groups):
        return "of slices in which the sides took turns, with its 95 % interval over rounds."
    if any(Caveat.UNPAIRED not in group.caveats and group.speedup.low is not None for group in groups):
        return "paired by round (not the ratio of the medians), with its 95 % interval."
    return (
        "ratio of geometric means (not of the medians), with Welch's 95 % interval of the variation between runs, "
        "not between days or other machines of the kind."
    )


_NOTHING_FINISHED = "A row without figures has no finished run; trainmark show RECORD shows why."


def _of_targets(groups: Sequence[GroupResult]) -> list[str]:
    targets = dict.fromkeys(group.reached.target for group in groups if group.reached)
    return [
        f"to target: training until {target}, without compilation and evaluation; median of the runs that reached it, "
        "and their number."
        for target in targets
    ]


def _of_peaks(groups: Sequence[GroupResult]) -> list[str]:
    """What the share of the peak is a share of."""
    several = {title for title, of in _PLACES if len({of(group.key) for group in groups}) > 1}
    lines: dict[str, None] = {}
    for group in groups:
        key, known = group.key, group.efficiency
        if known is None:
            continue
        promised = known.datasheet_flops_per_second
        sheet = f"; datasheet: {units.flops(promised)}/s" if promised else ""
        place = "".join(f", {of(key)}" for title, of in _PLACES if title in several)
        lines[
            f"of peak: share of the {units.flops(known.peak_flops_per_second)}/s that matrix products of "
            f"{known.measured_by} reach on {key.device_name or key.device} in {key.precision}{place}, "
            f"{when_measured(known.measured_at, known.others_share)}{sheet}."
        ] = None
    return list(lines)


_PLACES: tuple[tuple[str, Callable[[Key], str]], ...] = (
    ("threads", threads),
    ("machine", lambda key: f"machine {key.machine}"),
)
"""What else a peak belongs to, told where the groups differ in it."""


def _of_costs(groups: Sequence[GroupResult]) -> list[str]:
    lines = [f"energy: of one run's training epochs, {source}." for source in _sources(groups)]
    priced = [group for group in groups if group.cost.money_per_million_samples is not None]
    if priced:
        lines.append("cost: of one run's training epochs, at the given price.")
    able = [group for group in priced if Caveat.NOT_LEARNING not in group.caveats]
    if len({(group.key.machine, group.key.device, group.key.device_name) for group in able}) > 1:
        best = min(able, key=lambda group: group.cost.money_per_million_samples or 0.0)
        several = len({group.key.machine for group in able}) > 1
        where = best.key.words("device") + (f" of {best.key.machine}" if several else "")
        lines.append(
            f"cheapest: {best.key.backend} {best.key.words('style')} on {where}, "
            f"{units.money(best.cost.money_per_million_samples)} for a million samples."
        )
    return lines


def _sources(groups: Sequence[GroupResult]) -> list[str]:
    return list(dict.fromkeys(group.cost.source for group in groups if group.cost.source and group.cost.joules))
