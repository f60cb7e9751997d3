"""Achieved FLOPs against what a device's limits allow at each intensity (Williams, Waterman and Patterson 2009)."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence

from trainmark import units
from trainmark.report.charts.chart import HEIGHT, Chart, MeasuredSide, MeasuredWork, Rows, data, said


def rooflines(works: Sequence[MeasuredWork]) -> Iterator[Chart]:
    """One for each limit that was measured, with every side that it holds for as a point."""
    roofs: dict[tuple[object, ...], list[tuple[MeasuredWork, MeasuredSide]]] = {}
    for work in works:
        for side in work.sides:
            known = side.result.efficiency
            if known is not None and known.roofline_seconds is not None:
                key = side.result.key
                place = (key.machine, key.device, key.device_name, key.precision, key.threads)
                roofs.setdefault((*place, known.peak_flops_per_second), []).append((work, side))
    for (_, device, name, precision, *_), points in roofs.items():
        yield _roofline(f"{name or device}, {precision}", points)


def _roofline(where: str, points: Sequence[tuple[MeasuredWork, MeasuredSide]]) -> Chart:
    import altair as alt

    first = points[0][1].result.efficiency
    assert first is not None
    peak = first.peak_flops_per_second
    rows: Rows = [
        {
            "work": f"{side.result.key.workload}, {side.label}",
            "side": side.label,
            "intensity": known.intensity,
            "flops": known.flops_per_second,
            "words": f"{units.flops(known.flops_per_second)}/s, {units.percent(known.mfu, 1)} of the peak",
        }
        for _, side in points
        if (known := side.result.efficiency) is not None
    ]
    bandwidth = _bandwidth(points)
    left = min(row["intensity"] for row in rows) / 3
    right = max(*(row["intensity"] for row in rows), peak / bandwidth if bandwidth else 1.0) * 3
    corner = [peak / bandwidth] if bandwidth else []
    roof: Rows = [
        {"intensity": intensity, "flops": min(peak, intensity * bandwidth) if bandwidth else peak}
        for intensity in sorted({left, *corner, right})
    ]
    # What is further below the peak was not measured, and a scale of logarithms has no place for nothing.
    lowest = max(min(min(row["flops"] for row in rows), roof[0]["flops"]), peak * 1e-12, sys.float_info.min)
    x = alt.X(
        "intensity:Q",
        title="FLOPs for each byte that a step must move",
        scale=alt.Scale(type="log", domain=[left, right]),
    )
    y = alt.Y(
        "flops:Q",
        title="FLOP/s",
        axis=alt.Axis(format="~s"),
        scale=alt.Scale(type="log", domain=[10 ** math.floor(math.log10(lowest)), 10 ** math.ceil(math.log10(peak))]),
    )
    works = list(dict.fromkeys(row["work"] for row in rows))
    line = alt.Chart(data(roof)).mark_line(strokeWidth=2.5, clip=True).encode(x, y)
    marks = (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=90, opacity=0.9, clip=True)
        .encode(
            x,
            y,
            color=alt.Color("work:N", title=None, scale=alt.Scale(domain=works)),
            shape=alt.Shape("work:N", title=None, scale=alt.Scale(domain=works)),
            tooltip=["work:N", "side:N", "words:N"],
        )
    )
    return Chart(
        name="roofline",
        title=f"Roofline: {where}",
        text=f"The roof is {units.flops(peak)}/s. Points: " + said(f"{row['work']} {row['words']}" for row in rows),
        drawing=alt.layer(line, marks).properties(width="container", height=HEIGHT + 60),
        note=f"The roof: matrix products of {first.measured_by} and copies, as fast as measured here. "
        "A point below it has a reason that trainmark explain can find.",
    )


def _bandwidth(points: Sequence[tuple[MeasuredWork, MeasuredSide]]) -> float | None:
    """Bytes a second that the limits of these points were measured with."""
    known = [record.peaks.copy_bytes_per_second for _, side in points for record in side.records if record.peaks]
    return max((bandwidth for bandwidth in known if bandwidth is not None and bandwidth > 0), default=None)
