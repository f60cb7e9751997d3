"""What more devices give: predicted as a line, measured as points, beside what would be perfect."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark import units
from trainmark.analysis.scale import Scaling
from trainmark.analysis.scaling_model import Predicted
from trainmark.report.charts.chart import Chart, Rows, data, said

_HEIGHT = 300
_KINDS = ("perfect", "predicted, strong", "predicted, weak", "measured")


def scaling_chart(scaling: Scaling) -> Chart | None:
    """Examples a second by devices; None where nothing was predicted or measured."""
    import altair as alt

    lines, points = _lines(scaling), _points(scaling)
    if not lines and not points:
        return None
    x = alt.X("devices:Q", title="devices", scale=alt.Scale(type="log", base=2))
    y = alt.Y("rate:Q", title="examples a second", scale=alt.Scale(type="log"))
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=list(_KINDS)), sort=list(_KINDS))
    tooltip = ["kind:N", "layout:N", "devices:Q", alt.Tooltip("rate:Q", format=".4~s"), "efficiency:N"]
    base = alt.Chart(data(lines)).encode(x, y, color=colour, detail="kind:N", tooltip=tooltip)
    perfect = base.transform_filter("datum.kind == 'perfect'").mark_line(strokeDash=[4, 4], strokeWidth=1.5)
    curves = base.transform_filter("datum.kind != 'perfect'").mark_line(strokeWidth=2, point={"size": 18})
    measured = alt.Chart(data(points)).encode(x, color=colour)
    bars = (
        measured.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2="high:Q")
    )
    dots = measured.mark_point(size=90, filled=True, opacity=1.0).encode(y, tooltip=tooltip)
    shown = [each for each in scaling.layouts if each.samples_per_second]
    words = said(
        f"{each.data} × {each.pipeline}, {units.count(round(each.samples_per_second.value))} examples a second"
        for each in shown
        if each.samples_per_second
    )
    return Chart(
        name="scaling",
        title=f"{scaling.workload}: examples a second by devices",
        text=f"Measured: {words}" if shown else "Predicted only.",
        drawing=alt.layer(perfect, curves, bars, dots).properties(width="container", height=_HEIGHT),
        note="Points: median over rounds with its interval. Strong ends where a copy has no example left.",
    )


def _lines(scaling: Scaling) -> Rows:
    prediction = scaling.prediction
    if prediction is None:
        return []
    rows: Rows = []
    curves: tuple[tuple[str, Sequence[Predicted]], ...] = (
        ("predicted, strong", prediction.strong.points if prediction.strong else ()),
        ("predicted, weak", prediction.weak.points),
    )
    for kind, points in curves:
        rows += [
            {
                "kind": kind,
                "layout": f"{each.data} × {each.pipeline}",
                "devices": each.data * each.pipeline,
                "rate": each.samples_per_second,
                "efficiency": units.percent(each.efficiency, 1),
            }
            for each in points
        ]
    first, last = prediction.weak.points[0], prediction.weak.points[-1]
    rows += [
        {"kind": "perfect", "devices": each.data, "rate": first.samples_per_second * each.data}
        for each in (first, last)
    ]
    return rows


def _points(scaling: Scaling) -> Rows:
    return [
        {
            "kind": "measured",
            "layout": f"{each.data} × {each.pipeline}",
            "devices": each.ranks,
            "rate": each.samples_per_second.value,
            "low": each.samples_per_second.low,
            "high": each.samples_per_second.high,
            "efficiency": units.percent(each.efficiency.value, 1) if each.efficiency else units.MISSING,
        }
        for each in scaling.layouts
        if each.samples_per_second
    ]
