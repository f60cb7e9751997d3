"""Charts of measurements, each defined once in Vega-Lite for the page, files and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from trainmark.report.charts import cost, learning, speedup, time
from trainmark.report.charts.chart import Chart, MeasuredSide, MeasuredWork
from trainmark.report.charts.load import loads
from trainmark.report.charts.roofline import rooflines

OF_A_WORK: Mapping[str, Callable[[MeasuredWork], Chart]] = {
    "speedup": speedup.speedup,
    "epochs": time.epochs,
    "times": time.times,
    "pace": time.pace,
    "accuracy": partial(learning.curve, quantity="accuracy", over="epoch"),
    "accuracy-by-seconds": partial(learning.curve, quantity="accuracy", over="seconds"),
    "loss": partial(learning.curve, quantity="loss", over="epoch"),
    "loss-by-seconds": partial(learning.curve, quantity="loss", over="seconds"),
    "time-to-accuracy": learning.time_to_accuracy,
    "energy": cost.energy,
    "money": cost.money,
}
"""Charts that a workload has at most one of, in page order."""

NAMES = (*OF_A_WORK, "cores", "processes", "gpu-load", "gpu-memory", "gpu-power", "roofline")
"""Values of ``compare --chart``."""


def of_work(work: MeasuredWork) -> list[Chart]:
    """Return the charts of the workload as a whole."""
    text = any(side.result.tokens for side in work.sides)  # whose accuracy says little
    return _worth_drawing(
        draw(work) for name, draw in OF_A_WORK.items() if not (text and "accuracy" in name)
    )


def of_side(side: MeasuredSide) -> list[Chart]:
    """Return the charts of one side's utilisation."""
    return _worth_drawing(loads(side))


def of_all(measured: Sequence[MeasuredWork]) -> list[Chart]:
    """Return the charts of all workloads together."""
    return _worth_drawing(rooflines(measured))


def charts(measured: Sequence[MeasuredWork], names: Sequence[str]) -> list[Chart]:
    """Return all charts with these names, in the order of the names."""
    every = of_all(measured)
    for work in measured:
        every += of_work(work)
        for side in work.sides:
            every += of_side(side)
    asked = (chart for chart in every if chart.name in names)
    return sorted(asked, key=lambda chart: names.index(chart.name))


def _worth_drawing(charts: Iterable[Chart]) -> list[Chart]:
    """Return the charts that have enough points."""
    return [chart for chart in charts if chart.points >= chart.fewest]
