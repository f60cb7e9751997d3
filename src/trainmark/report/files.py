"""Charts and pictures as files, without a browser and without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainmark.errors import UnknownName, UsageError
from trainmark.report.charts import NAMES, charts
from trainmark.report.charts.chart import Chart, MeasuredWork
from trainmark.report.charts.theme import LIGHT
from trainmark.report.extras import require_extras

ENDINGS = (".svg", ".png")
WIDTH = 640
_PNG_SCALE = 2.0


def drawn(path: Path, works: Sequence[MeasuredWork], names: Sequence[str]) -> bytes:
    """The charts that are called so, as the end of ``path`` says: ``.svg`` or ``.png``.

    Raises:
        UsageError: another end, or nothing to draw.
        UnknownName: no such chart.
        NotInstalled: what draws is not there.
    """
    require_drawable(path)
    return in_format_of(path, chosen(works, names))


def require_drawable(path: Path) -> None:
    """Raise UsageError for a name that says no format of a picture, NotInstalled where nobody can draw."""
    if path.suffix not in ENDINGS:
        raise UsageError(f"{path} can't be drawn", expected=f"a name that ends in {' or '.join(ENDINGS)}")
    require_extras("report")


def in_format_of(path: Path, every: Sequence[Chart]) -> bytes:
    """The charts below each other, with titles and real colours, as the end of ``path`` says; two pixels for each."""
    import vl_convert

    spec = _spec(every, WIDTH)
    if path.suffix == ".svg":
        return str(vl_convert.vegalite_to_svg(spec)).encode()
    return bytes(vl_convert.vegalite_to_png(spec, scale=_PNG_SCALE))


def chosen(works: Sequence[MeasuredWork], names: Sequence[str]) -> list[Chart]:
    """The charts that are called so; raises as :func:`drawn`."""
    require_charts(names)
    found = charts(works, names)
    if not found:
        raise UsageError(
            f"there is nothing to draw for {', '.join(names)}",
            expected="records that hold what the chart shows",
            fix="A speed-up needs two groups of one workload; another chart may have enough.",
        )
    return found


def require_charts(names: Sequence[str]) -> None:
    """Raise UnknownName for a chart that there is not, NotInstalled without the libraries that draw."""
    require_extras("report")
    for name in names:
        if name not in NAMES:
            raise UnknownName("chart", name, NAMES)


def together(every: Sequence[Chart], width: int = WIDTH) -> Any:
    """As one Altair chart, which a notebook draws."""
    import altair as alt

    return alt.VConcatChart.from_dict(_spec(every, width), validate=False)


def svg_to_png(text: str) -> bytes:
    """An SVG picture in pixels, two for each."""
    import vl_convert

    pixels: bytes = vl_convert.svg_to_png(text, scale=_PNG_SCALE)
    return pixels


def _spec(every: Sequence[Chart], width: int) -> dict[str, Any]:
    parts, datasets = [], {}
    for chart in every:
        spec = chart.spec()
        spec.pop("config")
        schema = spec.pop("$schema")
        datasets.update(spec.pop("datasets", {}))  # which only stand at the top
        parts.append({**spec, "width": width, "title": {"text": chart.title, "subtitle": chart.note}})
    return {
        "$schema": schema,
        "config": {**LIGHT.config(), "concat": {"spacing": 36}},
        "datasets": datasets,
        "vconcat": parts,
        "resolve": {"scale": {"color": "independent", "shape": "independent"}},
        "padding": 16,
    }
