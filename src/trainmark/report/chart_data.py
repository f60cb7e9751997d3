"""A comparison with labelled sides, for charts and pages."""

from __future__ import annotations

from trainmark.analysis.answer import answering_pair
from trainmark.analysis.results import Comparison
from trainmark.report.charts.chart import MeasuredSide, MeasuredWork
from trainmark.report.comparison_table import title_of
from trainmark.report.labels import labels
from trainmark.report.printable import printable


def chart_data(comparison: Comparison) -> list[MeasuredWork]:
    """Return one item per workload and schedule, in the order measured."""
    found = []
    for positions in comparison.by_workload:
        results = [comparison.groups[position] for position in positions]
        names = [printable(name) for name in labels([result.key for result in results])]
        sides = tuple(
            MeasuredSide(name, result, comparison.measured[position].records)
            for name, result, position in zip(names, results, positions, strict=True)
        )
        found.append(
            MeasuredWork(
                title_of(results), sides, comparison, answering_pair(comparison, positions)
            )
        )
    return found
