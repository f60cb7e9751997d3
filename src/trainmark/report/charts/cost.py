"""Charts of the energy and the cost of training."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark import units
from trainmark.report.charts.chart import Chart, MeasuredWork, bars, is_known


def costs(work: MeasuredWork) -> Iterator[Chart]:
    """Yield the charts for a million training examples, as far as the data is known."""
    energy = {side.label: side.result.cost.joules_per_million_samples for side in work.sides}
    money = {side.label: side.result.cost.money_per_million_samples for side in work.sides}
    if any(is_known(each) for each in energy.values()):
        sources = {side.result.cost.source for side in work.sides if side.result.cost.source}
        note = f"Training epochs only, {', '.join(sorted(sources))}."
        yield bars(work, "energy", "Energy for a million training examples", "joules", energy, units.joules, note)
    if any(is_known(each) for each in money.values()):
        title = "Cost of a million training examples"
        note = "Training epochs only, at the given price."
        yield bars(work, "money", title, "currency of the given price", money, units.money, note)
