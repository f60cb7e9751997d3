"""Charts of the utilisation during training."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from trainmark import units
from trainmark.analysis.load import Load, load_of
from trainmark.report.charts.chart import Chart, MeasuredSide, Rows, data, said

_HEIGHT = 120


def loads(side: MeasuredSide) -> Iterator[Chart]:
    """Yield the charts of the side's typical run: a heat strip of CPU cores, then processes, GPUs, memory and power."""
    found = load_of(side.records)
    if found is None:
        return
    of_gpus = (_gpus(side.label, found, *each) for each in _OF_GPUS)
    yield from filter(None, (_cores(side.label, found), _processes(side.label, found), *of_gpus))


_OF_GPUS = (
    ("gpu-load", "gpus", "GPU utilisation", "percent"),
    ("gpu-memory", "gpu_memory_bytes", "GPU memory", "GiB"),
    ("gpu-power", "gpu_watts", "GPU power", "W"),
)


def _cores(label: str, load: Load) -> Chart | None:
    import altair as alt

    rows: Rows = [
        {"from": round(window.start, 3), "to": round(window.end, 3), "core": core, "percent": round(percent, 1)}
        for window in load.windows
        for core, percent in enumerate(window.cores)
        if percent is not None
    ]
    if not rows:
        return None
    count = 1 + max(row["core"] for row in rows)
    drawing = (
        alt.Chart(data(rows))
        .mark_rect()
        .encode(
            alt.X("from:Q", title="seconds since the start", scale=alt.Scale(nice=False)),
            x2="to:Q",
            y=alt.Y("core:O", title="core"),
            opacity=alt.Opacity(
                "percent:Q",
                title="utilisation (%)",
                legend=alt.Legend(columns=6),
                scale=alt.Scale(domain=[0, 100], range=[0.06, 1]),
            ),
            tooltip=["core:O", alt.Tooltip("percent:Q", format=".0f"), alt.Tooltip("from:Q", format=".3~s")],
        )
        .properties(width="container", height=count * max(4, min(26, 320 // count)))
    )
    means = {core: fmean(row["percent"] for row in rows if row["core"] == core) for core in {r["core"] for r in rows}}
    return Chart(
        name="cores",
        title=f"CPU cores: {label}",
        text="Heat strips. Mean utilisation: "
        + said(f"core {core} {mean:.0f} %" for core, mean in sorted(means.items())),
        drawing=drawing,
        note=_note(load),
    )


def _processes(label: str, load: Load) -> Chart | None:
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
    if not rows:
        return None
    x = alt.X("second:Q", title="seconds since the start", scale=alt.Scale(nice=False))
    base = alt.Chart(data(rows)).encode(x, tooltip=["second:Q", "percent:Q", "resident:Q"])
    area = base.mark_area(opacity=0.35, line=True).encode(
        alt.Y("percent:Q", title="% of a core"), color=alt.datum("CPU time", title=None)
    )
    memory = base.mark_line(strokeDash=[5, 4], strokeWidth=2).encode(
        alt.Y("resident:Q", title="GiB"), color=alt.datum("resident memory", title=None)
    )
    highest = max((row["resident"] for row in rows if row["resident"] is not None), default=None)
    drawing = alt.layer(area, memory).resolve_scale(y="independent").properties(width="container", height=_HEIGHT)
    return Chart(
        name="processes",
        title=f"Processes of the run: {label}",
        text=f"Mean CPU time {fmean(row['percent'] for row in rows):.0f} % of a core; "
        f"peak memory {units.bytes_(None if highest is None else highest * 2**30)}.",
        drawing=drawing,
        note=_note(load),
    )


def _gpus(label: str, load: Load, name: str, column: str, title: str, unit: str) -> Chart | None:
    import altair as alt

    divisor = 2**30 if unit == "GiB" else 1
    rows: Rows = [
        {"second": window.end, "gpu": f"GPU {number}", "value": value / divisor}
        for window in load.windows
        for number, value in enumerate(getattr(window, column))
        if value is not None
    ]
    if not rows:
        return None
    drawing = (
        alt.Chart(data(rows))
        .mark_line(strokeWidth=2)
        .encode(
            alt.X("second:Q", title="seconds since the start", scale=alt.Scale(nice=False)),
            alt.Y("value:Q", title=unit, scale=alt.Scale(domainMin=0)),
            color=alt.Color("gpu:N", title=None),
            tooltip=["gpu:N", "second:Q", "value:Q"],
        )
        .properties(width="container", height=_HEIGHT)
    )
    gpus = sorted({row["gpu"] for row in rows})
    means = {gpu: fmean(row["value"] for row in rows if row["gpu"] == gpu) for gpu in gpus}
    return Chart(
        name=name,
        title=f"{title}: {label}",
        text="Lines over time. Means: "
        + said(f"{gpu} {units.significant(mean)} {unit}" for gpu, mean in means.items()),
        drawing=drawing,
        note=_note(load),
    )


def _note(load: Load) -> str:
    note = f"Run {load.record.id}, sampled from outside"
    if load.thinned:
        note += f"; {load.rows:,} samples, averaged into {len(load.windows)} points (the record has all)"
    return f"{note}."
