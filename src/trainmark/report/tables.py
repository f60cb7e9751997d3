"""All tables of a comparison."""

from __future__ import annotations

from trainmark.analysis.results import Comparison
from trainmark.report.comparison_table import comparison_tables
from trainmark.report.machines_table import differences_table
from trainmark.report.markdown import to_markdown
from trainmark.report.published_table import published_tables
from trainmark.report.table import Table
from trainmark.report.yardstick_table import yardstick_table


def tables_of(comparison: Comparison) -> list[Table]:
    """A table a workload; above them what differs between machines, below what was published, if asked for."""
    differing = [differences_table(comparison.differences)] if comparison.differences else []
    known = [yardstick_table(comparison, comparison.references)] if comparison.references else []
    return [*differing, *comparison_tables(comparison), *published_tables(comparison.published), *known]


def comparison_markdown(comparison: Comparison) -> str:
    """``comparison`` as Markdown."""
    return to_markdown(tables_of(comparison))
