"""Chart of speed-ups with intervals."""

from __future__ import annotations

import math

from trainmark import units
from trainmark.report.charts.chart import Chart, MeasuredWork, Rows, colour, data, is_known, said
from trainmark.report.table import interval

_PLACES: dict[str, dict[str, object]] = {
    "reference": {"align": "left", "dx": 10},  # above the point, the vertical line would cross it
    "left": {"align": "left", "dy": -13},
    "middle": {"align": "center", "dy": -13},
    "right": {"align": "right", "dy": -13},
}
"""Where the words of a point are drawn, so that they stay within the chart."""


def speedup(work: MeasuredWork) -> Chart | None:
    """Return the chart of each side's speed-up over its reference; None if there is none."""
    import altair as alt

    rows: Rows = []
    for position, side in enumerate(work.sides):
        found, reference = side.result.speedup, side.result.reference
        against = work.comparison.groups[reference] if reference is not None else None
        if not is_known(found.ratio) or against is None:
            continue
        told = f"{units.ratio(found.ratio)}{interval(found.low, found.high)} {found.verdict}"
        rows.append(
            {
                "side": side.label,
                "ratio": found.ratio,
                "low": found.low,
                "high": found.high,
                "words": "reference" if against is side.result else told,
                "position": position,
            }
        )
    if len(rows) < 2:
        return None
    bounds = [bound for row in rows for bound in (row["ratio"], row["low"], row["high"]) if bound]
    domain = [min(0.8, 0.9 * min(bounds)), max(1.25, 1.1 * max(bounds))]
    for row in rows:
        row["place"] = "reference" if row["words"] == "reference" else _place(row["ratio"], *domain)
    y = alt.Y("side:N", title=None, sort=work.labels)
    scale, title = alt.Scale(type="log", domain=domain, nice=False), "speed-up over the reference"
    x = alt.X("ratio:Q", title=title, scale=scale)
    base = alt.Chart(data(rows)).encode(y)
    one = alt.Chart(data([{"one": 1.0}])).mark_rule(strokeDash=[4, 4]).encode(x="one:Q")
    layers = [one]
    if any(is_known(row["low"]) for row in rows):
        intervals = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=3, opacity=0.55)
        layers.append(
            intervals.encode(
                alt.X("low:Q", scale=scale, title=title), x2="high:Q", color=colour(work.labels, legend=None)
            )
        )
    points = base.mark_point(filled=True, size=110, opacity=1.0).encode(
        x, color=colour(work.labels, legend=None), tooltip=["side:N", "words:N"]
    )
    figures = [
        base.transform_filter(f"datum.place == '{name}'").mark_text(fontSize=11, **place).encode(x, text="words:N")
        for name, place in _PLACES.items()
    ]
    return Chart(
        name="speedup",
        title="Speed-up over the reference, with 95 % intervals",
        text="Points with intervals: " + said(f"{row['side']} {row['words']}" for row in rows),
        drawing=alt.layer(*layers, points, *figures).properties(width="container", height=44 * len(rows)),
        note="Paired by round; above 1 is faster.",
    )


def _place(ratio: float, low: float, high: float) -> str:
    """Return in which third of a logarithmic axis from ``low`` to ``high`` a ratio is."""
    share = math.log(ratio / low) / math.log(high / low)
    return "left" if share < 1 / 3 else "right" if share > 2 / 3 else "middle"
