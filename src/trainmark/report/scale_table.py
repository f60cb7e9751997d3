"""Tables of scaling to several devices."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark import units
from trainmark.analysis.scale import LayoutResult, Scaling
from trainmark.analysis.scale_results import AGREEMENT_STEPS
from trainmark.analysis.statistics import Estimate, SpeedVerdict
from trainmark.report.caveat_notes import caveat_notes
from trainmark.report.comparison_table import SPEED_TONES
from trainmark.report.table import Cell, Field, Table, interval, number, table_of, text_of

_ANSWERS: dict[SpeedVerdict, str] = {
    "faster": "More devices are faster than one",
    "slower": "More devices are slower than one",
    "same": "More devices are as fast as one",
    "unclear": "It is unclear whether more devices are faster than one",
}


def scale_tables(scaling: Scaling) -> list[Table]:
    """Return the table of measured layouts, if any."""
    if not scaling.layouts:
        return []
    threads = ""
    if scaling.threads is not None:
        threads = f", {units.many(scaling.threads, 'thread')} per rank"
    machines = "" if scaling.nodes == 1 else f", {scaling.nodes} machines"
    growth = "the copies share the batch"
    if scaling.mode == "weak":
        growth = "the batch grows with the copies"
    judged = any(each.agreement for each in scaling.layouts)
    losses = f"; losses of {units.many(scaling.steps, 'step')} in fp64" if judged else ""
    table = table_of(
        scaling.layouts,
        _layout(scaling.unit),
        title=f"{scaling.workload}: scaling to several devices",
        conditions=(
            f"{scaling.backend} {scaling.style} on {scaling.device}, {scaling.dataset}, "
            f"{scaling.precision}{threads}{machines}",
            f"{scaling.mode} scaling: {growth}, {units.count(scaling.batch)} examples on one "
            f"device; {units.many(scaling.repeats, 'interleaved round')}{losses}",
        ),
        notes=tuple(_notes(scaling)),
        answer=_answer(scaling),
    )
    return [table]


def _runs(each: LayoutResult) -> Cell:
    failed = f" + {each.failed} failed" if each.failed else ""
    return Cell(f"{each.runs}{failed}", tone="bad" if each.failed else "plain")


def _step_time(each: LayoutResult) -> Cell:
    seconds = each.step_seconds
    return number(None if seconds is None else seconds.value, units.seconds)


def _pace(each: LayoutResult) -> str:
    return units.count(round(each.pace.value)) if each.pace else units.MISSING


def _agreement(each: LayoutResult) -> Cell:
    found = each.agreement
    if found is None:
        return Cell(units.MISSING, tone="dim")
    if not found.passed:
        return Cell("FAIL", tone="bad")
    return Cell(f"PASS, {found.largest_difference or 0:.1e} of {found.tolerance:.0e}", tone="good")


def _notes(scaling: Scaling) -> Iterator[str]:
    for each in scaling.layouts:
        name = f"{each.data} × {each.pipeline}"
        if each.agreement and each.agreement.reason:
            yield f"{name}: {each.agreement.reason}."
        if each.reason:
            yield f"{name}: {each.reason}"
    yield from (f"{notice}." for notice in scaling.notices)
    yield from caveat_notes(
        {f"{each.data} × {each.pipeline}": each.caveats for each in scaling.layouts}
    )


def _answer(scaling: Scaling) -> Cell | None:
    """Return whether several devices pay off, for the fastest layout."""
    paces = [(each.speedup, each) for each in scaling.layouts if each.ranks > 1 and each.speedup]
    if not paces:
        return None
    speedup, fastest = max(paces, key=lambda pace: pace[0].ratio or 0.0)
    ratio = f"{units.ratio(speedup.ratio)}{interval(speedup.low, speedup.high)}"
    layout = f"{fastest.data} × {fastest.pipeline}"
    text = (
        f"{_ANSWERS[speedup.verdict]}: the fastest layout, {layout}, trains {ratio} as many "
        f"{scaling.unit}/s."
    )
    return Cell(text, tone=SPEED_TONES[speedup.verdict])


def _percent(share: Estimate | None) -> str:
    if share is None:
        return units.MISSING
    if share.low is None or share.high is None:
        return units.percent(share.value)
    return f"{units.percent(share.value)} [{100 * share.low:.0f}, {100 * share.high:.0f}]"


def _layout(unit: str) -> tuple[Field[LayoutResult], ...]:
    return (
        Field("copies", lambda each: Cell(str(each.data), tone="strong")),
        Field("stages", lambda each: Cell(str(each.pipeline), tone="strong"), "right"),
        Field("rounds", _runs, "right"),
        Field("step\ntime", _step_time, "right"),
        Field(f"{unit}/s", _pace, "right"),
        Field(
            "efficiency\n[95 %]",
            text_of("efficiency", _percent),
            "right",
            meaning=f"{unit}/s per device as a share of one device's, from interleaved slices.",
        ),
        Field(
            "communication\n[95 %]",
            text_of("communication", _percent),
            "right",
            meaning="the share of a step saved by not averaging gradients, including "
            "synchronisation wait; negative values are noise.",
        ),
        Field(
            "losses agree",
            _agreement,
            meaning=f"the largest relative difference in float64, at most {AGREEMENT_STEPS} "
            "steps, and its bound.",
        ),
    )
