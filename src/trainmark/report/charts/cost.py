"""Charts of the energy and the cost of training."""

from __future__ import annotations

from trainmark import units
from trainmark.report.charts.chart import Chart, MeasuredWork, bars


def energy(work: MeasuredWork) -> Chart:
    """Return the chart of the energy for a million training examples."""
    joules = {side.label: side.result.cost.joules_per_million_samples for side in work.sides}
    sources = {side.result.cost.source for side in work.sides if side.result.cost.source}
    note = f"Training epochs only, {', '.join(sorted(sources))}."
    return bars(
        work,
        "energy",
        "Energy for a million training examples",
        "joules",
        joules,
        units.joules,
        note,
    )


def money(work: MeasuredWork) -> Chart:
    """Return the chart of the cost of a million training examples."""
    costs = {side.label: side.result.cost.money_per_million_samples for side in work.sides}
    title = "Cost of a million training examples"
    note = "Training epochs only, at the given price."
    return bars(work, "money", title, "currency of the given price", costs, units.money, note)
