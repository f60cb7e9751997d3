"""Chart of speed-ups with intervals."""

from __future__ import annotations

import math

from trainmark import units
from trainmark.report.charts.chart import (
    FEWEST_SIDES,
    Chart,
    MeasuredWork,
    Rows,
    colour,
    data,
    is_known,
    joined,
)
from trainmark.report.comparison_table import bounds_of, how_compared, speed_verdict
from trainmark.report.table import interval

_LETTER = 6.0
"""Pixels that a letter of a point's words takes."""
_AWAY = 8.0
"""Pixels between a point and its words, which are above it."""


def speedup(work: MeasuredWork) -> Chart:
    """Return the chart of each side's speed-up over its reference."""
    import altair as alt

    rows: Rows = []
    compared = []
    for side in work.sides:
        found = side.result.speedup
        reference = side.result.reference
        if not is_known(found.ratio) or reference is None:
            continue
        words = "reference"
        if work.comparison.groups[reference] is not side.result:
            bounds = interval(found.low, found.high)
            if found.at_least is not None:
                bounds = f" ({bounds_of(found)})"
            words = f"{units.ratio(found.ratio)}{bounds} {speed_verdict(side.result)}"
            compared.append(side.result)
        rows.append(
            {
                "side": side.label,
                "ratio": found.ratio,
                "low": found.low,
                "high": found.high,
                "words": words,
            }
        )
    left, right = _domain(rows)
    # The words of a point on the left of the chart begin at it; those on the right end at it.
    for row in rows:
        share = math.log(row["ratio"] / left) / math.log(right / left)
        before = min(max(1.5 * share - 0.25, 0.0), 1.0)
        if row["words"] == "reference":
            before = round(before)  # otherwise the vertical line would cross it
        row["dx"] = _AWAY - before * (_LETTER * len(row["words"]) + 2 * _AWAY)
    scale = alt.Scale(type="log", domain=[left, right], nice=False)
    title = "speed-up over the reference"
    sides = alt.Y("side:N", title=None, sort=work.labels)
    colours = colour(work.labels, legend=None)
    base = alt.Chart(data(rows)).encode(alt.X("ratio:Q", title=title, scale=scale), sides)
    intervals = base.transform_filter("isValid(datum.low) && isValid(datum.high)").mark_rule(
        strokeWidth=3, opacity=0.55
    )
    points = base.mark_point(filled=True, size=110, opacity=1.0)
    figures = base.mark_text(fontSize=11, align="left", dx=alt.ExprRef("datum.dx"), dy=-13)
    return Chart(
        name="speedup",
        title="Speed-up over the reference",
        text="Points: " + joined(f"{row['side']} {row['words']}" for row in rows),
        drawing=alt.layer(
            alt.Chart(data([{"one": 1.0}])).mark_rule(strokeDash=[4, 4]).encode(x="one:Q"),
            intervals.encode(alt.X("low:Q", title=title, scale=scale), x2="high:Q", color=colours),
            points.encode(color=colours, tooltip=["side:N", "words:N"]),
            figures.encode(text="words:N"),
        ),
        points=len(rows),
        note=f"Above 1 is faster: {how_compared(compared)}",
        fewest=FEWEST_SIDES,
        height=44 * len(rows),
    )


def _domain(rows: Rows) -> tuple[float, float]:
    """Return the ends of the axis: 0.8 and 1.25, or beyond the points and their intervals."""
    ends: list[float] = []
    for row in rows:
        ends += filter(None, (row["ratio"], row["low"], row["high"]))
    return min([0.8, *(0.9 * end for end in ends)]), max([1.25, *(1.1 * end for end in ends)])
