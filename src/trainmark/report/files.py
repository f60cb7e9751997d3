"""Charts and pictures as files, without a browser and without a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmark.report.charts.chart import Chart
from trainmark.report.charts.theme import LIGHT

WIDTH = 640
_PNG_SCALE = 2.0


def svg(charts: Sequence[Chart], width: int = WIDTH) -> str:
    """Below each other, for papers and slides: titles, real colours, so many pixels wide."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(_spec(charts, width))
    return drawn


def png(charts: Sequence[Chart], width: int = WIDTH) -> bytes:
    """The same in pixels, two for each."""
    import vl_convert

    drawn: bytes = vl_convert.vegalite_to_png(_spec(charts, width), scale=_PNG_SCALE)
    return drawn


def together(charts: Sequence[Chart], width: int = WIDTH) -> Any:
    """As one Altair chart, which a notebook draws."""
    import altair as alt

    return alt.VConcatChart.from_dict(_spec(charts, width), validate=False)


def svg_to_png(text: str) -> bytes:
    """An SVG picture in pixels, two for each."""
    import vl_convert

    drawn: bytes = vl_convert.svg_to_png(text, scale=_PNG_SCALE)
    return drawn


def _spec(charts: Sequence[Chart], width: int) -> dict[str, Any]:
    parts, datasets = [], {}
    for chart in charts:
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
