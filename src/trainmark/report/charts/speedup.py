"""How many times as fast, with intervals."""

from __future__ import annotations

from trainmark import units
from trainmark.report.charts.chart import Chart, MeasuredWork, Rows, colour, data, is_known, said
from trainmark.report.table import interval


def speedup(work: MeasuredWork) -> Chart | None:
    """Each side against its reference."""
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
    y = alt.Y("side:N", title=None, sort=work.labels)
    scale, title = alt.Scale(type="log", domain=domain, nice=False), "times as fast as the reference"
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
    # The reference is on a line, which would cross a label above it.
    figures = [
        base.transform_filter(f"(datum.words == 'reference') == {here}")
        .mark_text(fontSize=11, **place)
        .encode(x, text="words:N")
        for here, place in (("false", {"dy": -13}), ("true", {"align": "left", "dx": 10}))
    ]
    return Chart(
        name="speedup",
        title="Times as fast as the reference, with 95 % intervals",
        text="Points with intervals: " + said(f"{row['side']} {row['words']}" for row in rows),
        drawing=alt.layer(*layers, points, *figures).properties(width="container", height=44 * len(rows)),
        note="Paired round by round; right of 1 is faster.",
    )
