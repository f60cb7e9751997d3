"""Charts of loss and accuracy over epochs and seconds, and of time to accuracy."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

from trainmark import units
from trainmark.analysis.learning_curve import seconds_to
from trainmark.analysis.statistics import median
from trainmark.record.caveats import Caveat
from trainmark.record.facts import FACTS
from trainmark.report.charts.chart import (
    Chart,
    MeasuredSide,
    MeasuredWork,
    Rows,
    colour,
    data,
    epoch_axis,
    is_known,
    joined,
    scale_of,
)

_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.985, 0.99, 0.995)
"""Test accuracies whose times are drawn."""


def curve(work: MeasuredWork, quantity: str, over: str) -> Chart:
    """Return a chart of the learning curves.

    Args:
        work: the workload.
        quantity: ``loss`` or ``accuracy``.
        over: ``epoch`` or ``seconds``.
    """
    import altair as alt

    rows: Rows = []
    for side in work.sides:
        rows += _values(side, quantity)
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
        percent = alt.Axis(format="~%")
        y = alt.Y("accuracy:Q", title="accuracy", axis=percent, scale=alt.Scale(zero=False))
    dashes = alt.Scale(domain=["test", "train"], range=[[1, 0], [5, 4]])
    dash = alt.StrokeDash("of:N", legend=None, scale=dashes)
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
        text=f"Lines. Last values: {joined(f'{line} {value}' for line, value in last.items())}",
        drawing=_lines(work, rows, 24).encode(x, y, strokeDash=dash, tooltip=tooltip),
        points=len(epochs),
        note=f"{note}.",
    )


def _values(side: MeasuredSide, quantity: str) -> Rows:
    """Return the side's known values of a quantity, one for each epoch and split of the data."""
    rows: Rows = []
    for summary in side.summaries:
        for split in ("test", "train"):
            value = getattr(summary, f"{split}_{quantity}")
            if is_known(value):
                rows.append(
                    {
                        "side": side.label,
                        "of": split,
                        "epoch": summary.epoch,
                        "seconds": summary.elapsed_seconds,
                        quantity: value,
                    }
                )
    return rows


def time_to_accuracy(work: MeasuredWork) -> Chart:
    """Return the chart of training seconds until the test accuracy first reached each level."""
    import altair as alt

    records = chain.from_iterable(side.records for side in work.sides)
    first = [record.epochs[0].test_accuracy for record in records if record.epochs]
    lowest = min((value for value in first if is_known(value)), default=math.inf)
    rows: Rows = []
    for side in work.sides:
        complete = (each for each in side.records if Caveat.SHORTENED not in each.caveats)
        trainings = [each for each in complete if not FACTS["slices_alone"].of(each)]
        for level in _LEVELS:
            if level < lowest:
                continue
            reached = [seconds_to(each, level) for each in trainings]
            middle = median([math.inf if seconds is None else seconds for seconds in reached])
            if is_known(middle):
                rows.append({"side": side.label, "accuracy": level, "seconds": middle})
    x = alt.X("accuracy:O", title="test accuracy", axis=alt.Axis(format=".3~%", labelAngle=0))
    scale = scale_of(row["seconds"] for row in rows)
    y = alt.Y("seconds:Q", title="seconds of training", scale=scale)
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
        + joined(
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
