"""Charts of durations: per epoch, in total, and as throughput."""

from __future__ import annotations

from functools import partial

from trainmark import units
from trainmark.analysis.statistics import median
from trainmark.report.charts.chart import (
    FEWEST_SIDES,
    Chart,
    MeasuredWork,
    Rows,
    bars,
    colour,
    data,
    epoch_axis,
    is_known,
    joined,
    scale_of,
)

_SHAPES = {"epoch": "circle", "first epoch": "diamond", "compilation": "triangle-up"}
_FEW = 30
"""Most epochs for which points are drawn large."""


def epochs(work: MeasuredWork) -> Chart:
    """Return the chart of every epoch's seconds, with warm-up and compilation marked."""
    import altair as alt

    rows: Rows = []
    for side in work.sides:
        compiled = side.result.compile_seconds
        if is_known(compiled):
            rows.append(
                {"side": side.label, "epoch": 0, "seconds": compiled, "kind": "compilation"}
            )
        for summary in side.summaries:
            spread = summary.seconds
            if is_known(spread.median):
                seconds = {"seconds": spread.median, "low": spread.low, "high": spread.high}
                kind = "first epoch" if summary.epoch == 1 else "epoch"
                rows.append({"side": side.label, "epoch": summary.epoch, **seconds, "kind": kind})
    first = min((row["epoch"] for row in rows), default=0)
    last = max((row["epoch"] for row in rows), default=0)
    scale = scale_of(row["seconds"] for row in rows)
    title = "seconds"
    y = alt.Y("seconds:Q", title=title, scale=scale)
    domain = alt.Scale(domain=[first if last > first else 0, last])
    x = alt.X("epoch:Q", title="epoch", axis=epoch_axis(last), scale=domain)
    base = alt.Chart(data(rows)).encode(x, color=colour(work.labels))
    layers = []
    if any(is_known(row.get("low")) for row in rows):  # otherwise Vega would warn of an empty axis
        band = base.transform_filter("isValid(datum.low)").mark_area(opacity=0.18)
        layers.append(band.encode(alt.Y("low:Q", title=title, scale=scale), y2="high:Q"))
    lines = base.transform_filter("datum.epoch > 0").mark_line(strokeWidth=2).encode(y)
    shapes = alt.Scale(domain=list(_SHAPES), range=list(_SHAPES.values()))
    points = base.mark_point(size=70 if last <= _FEW else 20, filled=True, opacity=1.0).encode(
        y,
        shape=alt.Shape("kind:N", legend=None, scale=shapes),
        tooltip=["side:N", "kind:N", "epoch:Q", alt.Tooltip("seconds:Q", format=".4~s")],
    )
    steady = (
        f"{side.label} {units.seconds(side.result.epoch_seconds.median)}" for side in work.sides
    )
    compilation = "; triangle at 0: compilation" if first == 0 else ""
    return Chart(
        name="epochs",
        title="Time per epoch",
        text=f"Lines over {units.many(last, 'epoch')}; medians of {work.epoch}: {joined(steady)}",
        drawing=alt.layer(*layers, lines, points),
        points=last,
        note="Line: median over runs; band: range (95 % interval from 6 runs). Diamond: first "
        f"epoch, including warm-up{compilation}. Evaluation excluded.",
    )


def times(work: MeasuredWork) -> Chart:
    """Return the chart of a steady epoch, an evaluation and the whole training side by side."""
    import altair as alt

    quantities = ("epoch", "evaluation", "whole training", "whole process")
    rows: Rows = []
    for side in work.sides:
        result = side.result
        tests = median(each.evaluation_seconds for each in side.summaries)
        found = (
            result.epoch_seconds.median,
            tests,
            result.training_seconds,
            result.process_seconds.median,
        )
        rows += [
            {"side": side.label, "what": what, "seconds": seconds, "words": units.seconds(seconds)}
            for what, seconds in zip(quantities, found, strict=True)
            if is_known(seconds)
        ]
    shown = [what for what in quantities if what in {row["what"] for row in rows}]
    x = alt.X("what:N", title=None, sort=shown, axis=alt.Axis(labelAngle=0))
    y = alt.Y("seconds:Q", title="seconds")
    base = alt.Chart(data(rows)).encode(x, y, xOffset=alt.XOffset("side:N", sort=work.labels))
    drawn = base.mark_bar().encode(
        color=colour(work.labels), tooltip=["side:N", "what:N", "words:N"]
    )
    figures = base.mark_text(dy=-7, fontSize=11).encode(text="words:N")
    return Chart(
        name="times",
        title="Time of an epoch, an evaluation and the whole training",
        text="Bars of seconds: "
        + joined(f"{row['side']}, {row['what']} {row['words']}" for row in rows),
        drawing=alt.layer(drawn, figures) if len(work.sides) <= 2 else drawn,
        points=len(rows),
        note="Medians over runs; whole training: all epochs, without evaluation and compilation.",
        fewest=FEWEST_SIDES,
    )


def pace(work: MeasuredWork) -> Chart:
    """Return the chart of examples or tokens per second in a steady epoch."""
    paces = {
        side.label: side.result.tokens_per_second or side.result.samples_per_second
        for side in work.sides
    }
    what = "tokens" if any(side.result.tokens for side in work.sides) else "examples"
    title = f"Training {what} per second"
    note = f"Median over runs, of {work.epoch}."
    return bars(work, "pace", title, title.lower(), paces, partial(units.rate, unit=""), note)
