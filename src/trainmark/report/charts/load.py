"""Charts of the utilisation during training."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from trainmark import units
from trainmark.analysis.load import Load, load_of
from trainmark.analysis.statistics import mean
from trainmark.report.charts.chart import Chart, MeasuredSide, Rows, data, joined

_HEIGHT = 120
"""Height of a plot over time, in pixels; a page has several of them per side."""


def loads(side: MeasuredSide) -> Iterator[Chart]:
    """Yield the charts of the side's typical run: CPU cores, processes, then GPUs."""
    found = load_of(side.records)
    if found is not None:
        yield from (_cores(side.label, found), _processes(side.label, found))
        yield from (_gpus(side.label, found, *each) for each in _OF_GPUS)


_OF_GPUS = (
    ("gpu-load", "gpus", "GPU utilisation", "percent"),
    ("gpu-memory", "gpu_memory_bytes", "GPU memory", "GiB"),
    ("gpu-power", "gpu_watts", "GPU power", "W"),
)


def _cores(label: str, load: Load) -> Chart:
    import altair as alt

    rows: Rows = []
    for window in load.windows:
        times = {"from": round(window.start, 3), "to": round(window.end, 3)}
        for core, percent in enumerate(window.cores):
            if percent is not None:
                rows.append({**times, "core": core, "percent": round(percent, 1)})
    means = _means(rows, "core", "percent")
    cells = alt.Chart(data(rows)).mark_rect()
    x = _seconds("from:Q")
    y = alt.Y("core:O", title="core")
    scale = alt.Scale(domain=[0, 100], range=[0.06, 1])
    opacity = alt.Opacity(
        "percent:Q", title="utilisation (%)", legend=alt.Legend(columns=6), scale=scale
    )
    tooltip = [
        "core:O",
        alt.Tooltip("percent:Q", format=".0f"),
        alt.Tooltip("from:Q", format=".3~s"),
    ]
    return Chart(
        name="cores",
        title=f"CPU cores: {label}",
        text="Heat strips. Mean utilisation: "
        + joined(f"core {core} {share:.0f} %" for core, share in means.items()),
        drawing=cells.encode(x, y, x2="to:Q", opacity=opacity, tooltip=tooltip),
        points=len({row["from"] for row in rows}),
        height=max(4 * len(means), min(26 * len(means), 320)),
        note=_note(load),
    )


def _processes(label: str, load: Load) -> Chart:
    import altair as alt

    rows: Rows = [
        {
            "second": window.end,
            "percent": window.tree_cpu,
            "resident": None if window.resident_bytes is None else window.resident_bytes / 2**30,
        }
        for window in load.windows
        if window.tree_cpu is not None
    ]
    base = alt.Chart(data(rows)).encode(
        _seconds("second:Q"), tooltip=["second:Q", "percent:Q", "resident:Q"]
    )
    area = base.mark_area(opacity=0.35, line=True).encode(
        alt.Y("percent:Q", title="% of a core"), color=alt.datum("CPU time", title=None)
    )
    memory = base.mark_line(strokeDash=[5, 4], strokeWidth=2).encode(
        alt.Y("resident:Q", title="GiB"), color=alt.datum("resident memory", title=None)
    )
    highest = max((row["resident"] for row in rows if row["resident"] is not None), default=None)
    return Chart(
        name="processes",
        title=f"Processes of the run: {label}",
        text=f"Mean CPU time {mean([row['percent'] for row in rows]) or 0:.0f} % of a core; "
        f"peak memory {units.bytes_(None if highest is None else highest * 2**30)}.",
        drawing=alt.layer(area, memory).resolve_scale(y="independent"),
        points=len(rows),
        height=_HEIGHT,
        note=_note(load),
    )


def _gpus(label: str, load: Load, name: str, column: str, title: str, unit: str) -> Chart:
    """Draw one quantity of all GPUs over time; memory is converted to GiB."""
    import altair as alt

    divisor = 2**30 if unit == "GiB" else 1
    rows: Rows = []
    for window in load.windows:
        for number, value in enumerate(getattr(window, column)):
            if value is not None:
                gpu = f"GPU {number}"
                rows.append({"second": window.end, "gpu": gpu, "value": value / divisor})
    lines = alt.Chart(data(rows)).mark_line(strokeWidth=2)
    x = _seconds("second:Q")
    y = alt.Y("value:Q", title=unit, scale=alt.Scale(domainMin=0))
    colour = alt.Color("gpu:N", title=None)
    means = _means(rows, "gpu", "value").items()
    return Chart(
        name=name,
        title=f"{title}: {label}",
        text="Lines over time. Means: "
        + joined(f"{gpu} {units.significant(value)} {unit}" for gpu, value in means),
        drawing=lines.encode(x, y, color=colour, tooltip=["gpu:N", "second:Q", "value:Q"]),
        points=len({row["second"] for row in rows}),
        height=_HEIGHT,
        note=_note(load),
    )


def _seconds(field: str) -> Any:
    import altair as alt

    return alt.X(field, title="seconds since the start", scale=alt.Scale(nice=False))


def _means(rows: Rows, by: str, of: str) -> dict[Any, float]:
    """Return the mean of ``of`` for each value of ``by``."""
    return {
        each: fmean(row[of] for row in rows if row[by] == each)
        for each in sorted({row[by] for row in rows})
    }


def _note(load: Load) -> str:
    note = f"Run {load.record.id}, sampled from outside"
    if load.rows > len(load.windows):
        points = len(load.windows)
        note += f"; {load.rows:,} samples, averaged into {points} points (the record has all)"
    return f"{note}."
