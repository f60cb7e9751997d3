"""All tables of a comparison."""

from __future__ import annotations

import dataclasses

from trainmark.analysis.results import Comparison
from trainmark.report.chart_data import chart_data
from trainmark.report.comparison_table import comparison_tables
from trainmark.report.machines_table import differences_table
from trainmark.report.markdown import to_markdown
from trainmark.report.published_table import published_tables
from trainmark.report.table import Cell, Table
from trainmark.report.verdict import verdict
from trainmark.report.yardstick_table import yardstick_table


def tables_of(comparison: Comparison) -> list[Table]:
    """Return all tables of a comparison, each only if the comparison has something for it.

    These are the differences between machines, a table with its answer per workload, the published
    figures, and the reference devices.
    """
    tables: list[Table] = []
    if comparison.differences:
        tables.append(differences_table(comparison.differences))
    for table, work in zip(comparison_tables(comparison), chart_data(comparison), strict=True):
        found = verdict(work)
        tables.append(dataclasses.replace(table, answer=Cell(found.text, tone=found.tone)))
    tables += published_tables(comparison.published)
    if comparison.references:
        tables.append(yardstick_table(comparison))
    return tables


def comparison_markdown(comparison: Comparison) -> str:
    """Return ``comparison`` as Markdown."""
    return to_markdown(tables_of(comparison))
