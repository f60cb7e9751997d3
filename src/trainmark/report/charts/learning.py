"""Charts of loss and accuracy over epochs and seconds, and of time to accuracy."""

from __future__ import annotations

import math
from typing import Any

from trainmark import units
from trainmark.analysis.course import seconds_to
from trainmark.analysis.statistics import median
from trainmark.record.facts import FACTS
from trainmark.report.charts.chart import (
    Chart,
    MeasuredWork,
    Rows,
    colour,
    data,
    epoch_axis,
    is_known,
    said,
    scale_of,
)

_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.985, 0.99, 0.995)


def curve(work: MeasuredWork, quantity: str, over: str) -> Chart:
    """Return the chart of ``loss`` or ``accuracy`` over ``epoch`` or over ``seconds`` of
    training.
    """
    import altair as alt

    rows: Rows = [
        {
            "side": side.label,
            "of": split,
            "epoch": station.epoch,
            "seconds": station.elapsed_seconds,
            quantity: value,
        }
        for side in work.sides
        for station in side.stations
        for split in ("test", "train")
        if is_known(value := getattr(station, f"{split}_{quantity}"))
    ]
    epochs = {row["epoch"] for row in rows}
    name = quantity
    where = "epochs"
    note = "Solid: test; dashed: training. Medians over runs"
    x = alt.X("epoch:Q", title="epoch", axis=epoch_axis(max(epochs, default=0)))
    if over == "seconds":
        name = f"{quantity}-by-seconds"
        where = "seconds of training"
        note = f"{note}; only training time counts"
        x = alt.X("seconds:Q", title=where, scale=scale_of(row["seconds"] for row in rows))
    in_words = units.percent if quantity == "accuracy" else units.loss
    y = alt.Y("loss:Q", title="loss", scale=scale_of(row[quantity] for row in rows))
    if quantity == "accuracy":
        y = alt.Y(
            "accuracy:Q", title="accuracy", axis=alt.Axis(format="~%"), scale=alt.Scale(zero=False)
        )
    dash = alt.StrokeDash(
        "of:N", legend=None, scale=alt.Scale(domain=["test", "train"], range=[[1, 0], [5, 4]])
    )
    tooltip = [
        "side:N",
        "of:N",
        "epoch:Q",
        alt.Tooltip("seconds:Q", format=".3~s"),
        f"{quantity}:Q",
    ]
    last = {f"{row['side']}, {row['of']}": in_words(row[quantity]) for row in rows}
    return Chart(
        name=name,
        title=f"{quantity.capitalize()} over {where}",
        text=f"Lines. Last values: {said(f'{line} {value}' for line, value in last.items())}",
        drawing=_lines(work, rows, 24).encode(x, y, strokeDash=dash, tooltip=tooltip),
        points=len(epochs),
        note=f"{note}.",
    )


def time_to_accuracy(work: MeasuredWork) -> Chart:
    """Return the chart of training seconds until the test accuracy first reached each level."""
    import altair as alt

    first = [
        record.epochs[0].test_accuracy
        for side in work.sides
        for record in side.records
        if record.epochs
    ]
    lowest = min((value for value in first if is_known(value)), default=math.inf)
    rows: Rows = []
    for side in work.sides:
        for level in (level for level in _LEVELS if level >= lowest):
            reached = [
                seconds_to(each, level)
                for each in side.records
                if not FACTS["slices_alone"].of(each)
            ]
            middle = median([math.inf if seconds is None else seconds for seconds in reached])
            if is_known(middle):
                rows.append({"side": side.label, "accuracy": level, "seconds": middle})
    x = alt.X("accuracy:O", title="test accuracy", axis=alt.Axis(format=".3~%", labelAngle=0))
    y = alt.Y(
        "seconds:Q", title="seconds of training", scale=scale_of(row["seconds"] for row in rows)
    )
    tooltip = [
        "side:N",
        alt.Tooltip("accuracy:Q", format=".3~%"),
        alt.Tooltip("seconds:Q", format=".3~s"),
    ]
    highest = {row["side"]: row for row in rows}
    return Chart(
        name="time-to-accuracy",
        title="Time to accuracy",
        text="Lines. Highest accuracy reached: "
        + said(
            f"{side}, {row['accuracy']:.1%} after {units.seconds(row['seconds'])}"
            for side, row in highest.items()
        ),
        drawing=_lines(work, rows, 60).encode(x, y, tooltip=tooltip),
        points=len({row["accuracy"] for row in rows}),
        note="To the end of the first epoch with this accuracy, in the median run, if most runs "
        "reach it.",
    )


def _lines(work: MeasuredWork, rows: Rows, size: int) -> Any:
    """Return a line per side, with points of this ``size``."""
    import altair as alt

    lines = alt.Chart(data(rows)).mark_line(point={"size": size, "filled": True}, strokeWidth=2)
    return lines.encode(color=colour(work.labels))
