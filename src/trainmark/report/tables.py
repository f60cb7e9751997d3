"""A comparison in every form it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainmark.analysis.results import Comparison
from trainmark.report.comparison_table import comparison_tables
from trainmark.report.csv_text import to_csv
from trainmark.report.machines_table import differences_table
from trainmark.report.markdown import to_markdown
from trainmark.report.published_table import published_tables
from trainmark.report.table import Table
from trainmark.report.yardstick_table import yardstick_table

if TYPE_CHECKING:
    from rich.console import Console


def tables_of(comparison: Comparison) -> list[Table]:
    """A table a workload; above them what differs between machines, below what was published, if asked for."""
    differing = [differences_table(comparison.differences)] if comparison.differences else []
    known = [yardstick_table(comparison, comparison.references)] if comparison.references else []
    return [*differing, *comparison_tables(comparison), *published_tables(comparison.published), *known]


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Draw ``comparison`` on a rich console, as wide as that is."""
    from trainmark.report.terminal import draw_all

    draw_all(console, tables_of(comparison))


def comparison_markdown(comparison: Comparison) -> str:
    """``comparison`` as Markdown."""
    return to_markdown(tables_of(comparison))


def comparison_csv(comparison: Comparison) -> str:
    """``comparison`` as CSV, unrounded."""
    return to_csv(tables_of(comparison))
