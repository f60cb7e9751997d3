"""Charts as files, without a browser or a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainmark import regular
from trainmark.errors import UnknownName, UsageError
from trainmark.report.charts import NAMES, charts
from trainmark.report.charts.chart import Chart, MeasuredWork
from trainmark.report.charts.theme import LIGHT
from trainmark.report.extras import require_extras

ENDINGS = (".svg", ".png")
WIDTH = 640
"""Width of the plot of a chart, in pixels."""
_PNG_SCALE = 2.0
"""Pixels of a PNG per pixel of a chart, for sharp text on high-resolution screens."""


def drawn(path: Path, measured: Sequence[MeasuredWork], names: Sequence[str]) -> bytes:
    """Return the named charts in the format of ``path``'s suffix: ``.svg`` or ``.png``.

    Raises:
        UsageError: another suffix, or nothing to draw.
        UnknownName: no such chart.
        NotInstalled: the drawing libraries are missing.
    """
    require_drawable(path)
    return in_format_of(path, chosen(measured, names))


def require_drawable(path: Path) -> None:
    """Raise UsageError if no image can be written there, NotInstalled without the libraries."""
    if path.suffix not in ENDINGS:
        raise UsageError(
            f"can't draw {path}", expected=f"a file name that ends in {' or '.join(ENDINGS)}"
        )
    if not regular.can_write(path):
        raise UsageError(
            f"can't write {path}", expected="an existing, writable folder", found=str(path.parent)
        )
    require_extras("report")


def in_format_of(path: Path, every: Sequence[Chart]) -> bytes:
    """Return the charts below each other, with titles, in the format of ``path``'s suffix."""
    import vl_convert

    spec = together(every).to_dict(validate=False)
    if path.suffix == ".svg":
        return str(vl_convert.vegalite_to_svg(spec)).encode()
    return bytes(vl_convert.vegalite_to_png(spec, scale=_PNG_SCALE))


def chosen(measured: Sequence[MeasuredWork], names: Sequence[str]) -> list[Chart]:
    """Return the charts with these names; raises as :func:`drawn` does."""
    require_charts(names)
    found = charts(measured, names)
    if not found:
        raise UsageError(
            f"nothing to draw for {', '.join(names)}",
            expected="records with the data that the chart shows",
            fix="Choose another chart: curves and rooflines need three points, comparisons two "
            "groups of one workload.",
        )
    return found


def require_charts(names: Sequence[str]) -> None:
    """Raise UnknownName for an unknown chart, NotInstalled if the drawing libraries are missing."""
    require_extras("report")
    for name in names:
        if name not in NAMES:
            raise UnknownName("chart", name, NAMES)


def together(every: Sequence[Chart]) -> Any:
    """Return the charts as one Altair chart, which a notebook can display."""
    import altair as alt

    parts = [
        chart.described(width=WIDTH, title={"text": chart.title, "subtitle": chart.note})
        for chart in every
    ]
    whole = alt.vconcat(*parts, spacing=36, padding=16).resolve_scale(
        color="independent", shape="independent"
    )
    return whole.configure(**LIGHT.config())


def svg_to_png(text: str) -> bytes:
    """Convert an SVG image to PNG, at double resolution."""
    import vl_convert

    pixels: bytes = vl_convert.svg_to_png(text, scale=_PNG_SCALE)
    return pixels
