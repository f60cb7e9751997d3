"""All tables of a comparison."""

from __future__ import annotations

import dataclasses

from trainmark.analysis.results import Comparison
from trainmark.report.comparison_table import comparison_tables
from trainmark.report.machines_table import differences_table
from trainmark.report.markdown import to_markdown
from trainmark.report.published_table import published_tables
from trainmark.report.table import Cell, Table
from trainmark.report.verdict import verdict
from trainmark.report.works import works
from trainmark.report.yardstick_table import yardstick_table


def tables_of(comparison: Comparison) -> list[Table]:
    """Return the differences between machines, a table with its answer per workload, the published
    figures, and the reference devices; each only if the comparison has them.
    """
    differing = [differences_table(comparison.differences)] if comparison.differences else []
    known = [yardstick_table(comparison)] if comparison.references else []
    answered = [
        dataclasses.replace(table, answer=Cell(found.text, tone=found.tone))
        for table, found in zip(
            comparison_tables(comparison), map(verdict, works(comparison)), strict=True
        )
    ]
    return [*differing, *answered, *published_tables(comparison.published), *known]


def comparison_markdown(comparison: Comparison) -> str:
    """Return ``comparison`` as Markdown."""
    return to_markdown(tables_of(comparison))
