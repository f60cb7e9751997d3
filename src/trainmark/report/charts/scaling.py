"""Chart of throughput by number of devices, next to perfect scaling."""

from __future__ import annotations

from trainmark import units
from trainmark.analysis.scale import Scaling
from trainmark.report.charts.chart import Chart, Rows, data, joined


def scaling_chart(scaling: Scaling) -> Chart | None:
    """Return the chart of the throughput by devices; None if nothing was measured."""
    import altair as alt

    points = _points(scaling)
    if not points:
        return None
    x = alt.X("devices:Q", title="devices", scale=alt.Scale(type="log", base=2))
    y = alt.Y("rate:Q", title=f"{scaling.unit} per second", scale=alt.Scale(type="log"))
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=["perfect", "measured"]))
    tooltip = [
        "kind:N",
        "layout:N",
        "devices:Q",
        alt.Tooltip("rate:Q", format=".4~s"),
        "efficiency:N",
    ]
    perfect = alt.Chart(data(_perfect(points))).encode(x, y, color=colour)
    measured = alt.Chart(data(points)).encode(x, color=colour)
    intervals = measured.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2)
    dots = measured.mark_point(size=90, filled=True, opacity=1.0).encode(y, tooltip=tooltip)
    words = joined(
        f"{point['layout']}, {units.count(round(point['rate']))} {scaling.unit} per second"
        for point in points
    )
    line = perfect.mark_line(strokeDash=[4, 4], strokeWidth=1.5)
    return Chart(
        name="scaling",
        title=f"{scaling.workload}: {scaling.unit} per second by devices",
        text=f"Measured: {words}",
        drawing=alt.layer(line, intervals.encode(y=alt.Y("low:Q"), y2="high:Q"), dots),
        points=len(points),
        height=300,
        note="Points: median over rounds, with its interval.",
    )


def _perfect(points: Rows) -> Rows:
    """Return the rate of one device, if measured, times the number of devices."""
    alone = next((point["rate"] for point in points if point["devices"] == 1), None)
    if alone is None:
        return []
    most = max(point["devices"] for point in points)
    return [
        {"kind": "perfect", "devices": devices, "rate": alone * devices} for devices in (1, most)
    ]


def _points(scaling: Scaling) -> Rows:
    rows: Rows = []
    for each in scaling.layouts:
        if not each.pace:
            continue
        efficiency = units.percent(each.efficiency.value, 1) if each.efficiency else units.MISSING
        rows.append(
            {
                "kind": "measured",
                "layout": f"{each.data} × {each.pipeline}",
                "devices": each.ranks,
                "rate": each.pace.value,
                "low": each.pace.low,
                "high": each.pace.high,
                "efficiency": efficiency,
            }
        )
    return rows
