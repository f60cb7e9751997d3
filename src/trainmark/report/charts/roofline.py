"""Roofline charts: achieved FLOPs and a device's limits by intensity.

See Williams, Waterman and Patterson, 2009.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from itertools import chain

from trainmark import units
from trainmark.analysis.efficiency import Efficiency
from trainmark.report.charts.chart import (
    HEIGHT,
    Chart,
    MeasuredSide,
    MeasuredWork,
    Rows,
    data,
    joined,
)
from trainmark.report.conditions import share_of_peak


def rooflines(measured: Sequence[MeasuredWork]) -> Iterator[Chart]:
    """Yield one chart per measured peak, with a point for every side it applies to."""
    roofs: dict[tuple[object, ...], list[tuple[MeasuredSide, Efficiency]]] = {}
    for side in chain.from_iterable(work.sides for work in measured):
        key = side.result.key
        known = side.result.efficiency
        if known is not None and known.roofline_seconds is not None:
            place = (key.machine, key.device, key.device_name, key.precision, key.threads)
            roofs.setdefault((*place, known.peak_flops_per_second), []).append((side, known))
    for (_, device, name, precision, *_), points in roofs.items():
        yield _roofline(f"{name or device}, {precision}", points)


def _roofline(where: str, points: Sequence[tuple[MeasuredSide, Efficiency]]) -> Chart:
    import altair as alt

    first = points[0][1]
    peak = first.peak_flops_per_second
    rows: Rows = [
        {
            "work": f"{side.result.key.workload}, {side.label}",
            "side": side.label,
            "intensity": known.intensity,
            "flops": known.flops_per_second,
            "words": f"{units.flops(known.flops_per_second)}/s, {share_of_peak(known)} of the peak",
        }
        for side, known in points
    ]
    bandwidth = _bandwidth(points)
    left = min(row["intensity"] for row in rows) / 3
    right = max(*(row["intensity"] for row in rows), peak / bandwidth if bandwidth else 1.0) * 3
    corner = [peak / bandwidth] if bandwidth else []
    roof: Rows = [
        {"intensity": intensity, "flops": min(peak, intensity * bandwidth) if bandwidth else peak}
        for intensity in sorted({left, *corner, right})
    ]
    # Anything further below the peak was not measured, and a logarithmic scale can't show zero.
    drawn = min(roof[0]["flops"], *(row["flops"] for row in rows))
    lowest = max(drawn, peak * 1e-12, sys.float_info.min)
    across = alt.Scale(type="log", domain=[left, right])
    x = alt.X("intensity:Q", title="intensity (FLOPs per byte)", scale=across)
    decades = [10 ** math.floor(math.log10(lowest)), 10 ** math.ceil(math.log10(peak))]
    up = alt.Scale(type="log", domain=decades)
    y = alt.Y("flops:Q", title="FLOP/s", axis=alt.Axis(format="~s"), scale=up)
    scale = alt.Scale(domain=list(dict.fromkeys(row["work"] for row in rows)))
    line = alt.Chart(data(roof)).mark_line(strokeWidth=2.5, clip=True).encode(x, y)
    points_of_sides = alt.Chart(data(rows)).mark_point(filled=True, size=90, opacity=0.9, clip=True)
    colour = alt.Color("work:N", title=None, scale=scale)
    shape = alt.Shape("work:N", title=None, scale=scale)
    marks = points_of_sides.encode(
        x, y, color=colour, shape=shape, tooltip=["work:N", "side:N", "words:N"]
    )
    return Chart(
        name="roofline",
        title=f"Roofline: {where}",
        text=f"The roof is at {units.flops(peak)}/s. Points: "
        + joined(f"{row['work']} {row['words']}" for row in rows),
        drawing=alt.layer(line, marks),
        points=len(rows),
        height=HEIGHT + 60,
        note=f"Roof: {first.measured_by}'s matrix products and copies, as measured here. "
        "Intensity: FLOPs per byte that a step must move. "
        "trainmark explain shows why a point is below it.",
    )


def _bandwidth(points: Sequence[tuple[MeasuredSide, Efficiency]]) -> float | None:
    """Return the measured bandwidth of these points, in bytes per second."""
    records = chain.from_iterable(side.records for side, _ in points)
    known = [record.peaks.copy_bytes_per_second for record in records if record.peaks]
    return max((each for each in known if each is not None and each > 0), default=None)
