"""A comparison with the records it is of: what charts and pages are made from."""

from __future__ import annotations

from collections.abc import Iterable

from trainmark.analysis.groups import group_records
from trainmark.analysis.results import Comparison
from trainmark.record.record import Record
from trainmark.report.charts.chart import Side, Work
from trainmark.report.comparison_table import title_of
from trainmark.report.labels import labels


def works(records: Iterable[Record], comparison: Comparison) -> list[Work]:
    """One for each workload and schedule, in the order measured.

    Args:
        comparison: of these records.
    """
    members: dict[tuple[str, str, str], list[int]] = {}
    groups = group_records(records)
    for position, group in enumerate(groups):
        members.setdefault(group.key.same_work, []).append(position)
    found = []
    for positions in members.values():
        names = labels([groups[position].key for position in positions])
        sides = tuple(
            Side(name, comparison.groups[position], groups[position].records)
            for name, position in zip(names, positions, strict=True)
        )
        found.append(Work(title_of([side.result for side in sides]), sides, comparison))
    return found
