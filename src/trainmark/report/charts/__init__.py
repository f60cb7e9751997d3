"""Charts of measurements, each defined once in Vega-Lite for the page, files and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from trainmark.report.charts import learning, speedup, time
from trainmark.report.charts.chart import Chart, MeasuredWork
from trainmark.report.charts.cost import costs
from trainmark.report.charts.load import loads
from trainmark.report.charts.roofline import rooflines

OF_A_WORK: Mapping[str, Callable[[MeasuredWork], Chart | None]] = {
    "speedup": speedup.speedup,
    "epochs": time.epochs,
    "times": time.times,
    "pace": time.pace,
    "accuracy": partial(learning.curve, quantity="accuracy", over="epoch"),
    "accuracy-by-seconds": partial(learning.curve, quantity="accuracy", over="seconds"),
    "loss": partial(learning.curve, quantity="loss", over="epoch"),
    "loss-by-seconds": partial(learning.curve, quantity="loss", over="seconds"),
    "time-to-accuracy": learning.time_to_accuracy,
}
"""Charts that a workload has at most one of, in page order."""

NAMES = (*OF_A_WORK, "energy", "money", "cores", "processes", "gpu-load", "gpu-memory", "gpu-power", "roofline")
"""Values of ``compare --chart``."""


def of_work(work: MeasuredWork) -> list[Chart]:
    """Return all charts of the workload as a whole that have enough data."""
    drawn = (draw(work) for draw in OF_A_WORK.values())
    return [*(chart for chart in drawn if chart is not None), *costs(work)]


def charts(works: Sequence[MeasuredWork], names: Sequence[str]) -> list[Chart]:
    """Return all charts with these names, in the order of the names."""

    def every() -> Iterator[Chart]:
        for work in works:
            yield from of_work(work)
            for side in work.sides:
                yield from loads(side)
        yield from rooflines(works)

    return sorted((chart for chart in every() if chart.name in names), key=lambda chart: names.index(chart.name))
