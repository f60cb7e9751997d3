"""``trainmark compare``: compare records, with intervals, verdicts and caveats."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.cli import complete, output
from trainmark.cli.main import MISSED_BAR, OK
from trainmark.cli.options import baseline_option, number_option, records_argument, split_names
from trainmark.errors import UsageError
from trainmark.report.console import console, draw_all
from trainmark.units import many, ratio

if TYPE_CHECKING:
    from trainmark.analysis.fail_below import FailBelow
    from trainmark.analysis.results import Comparison, GroupResult

EPILOG = """\b
Examples:
  trainmark compare trainmark-results/                        everything against the first measured
  trainmark compare trainmark-results/ --by device --baseline device=cpu
  trainmark compare old/ new/ --by python --fail-below 0.95   for CI: exit code 3 when slower
  trainmark compare trainmark-results/ --published            against the published figures
  trainmark compare trainmark-results/ --plot speedup.svg     with intervals, for a paper
  trainmark compare trainmark-results/ --plot epochs.png --chart epochs,times
"""


@click.command("compare", epilog=EPILOG)
@records_argument
@click.option(
    "--by",
    metavar="[device|backend|style|machine|python]",
    shell_complete=complete.one_of(complete.dimensions),
    help="Compare only along this dimension, all else equal.",
)
@baseline_option
@click.option(
    "--published", is_flag=True, help="Compare with the published figures: agrees or differs."
)
@click.option("--reference", is_flag=True, help="Add reference devices with known throughput.")
@number_option(
    "--margin",
    "Speed-ups this close to 1 count as the same.",
    float,
    default=3.0,
    metavar="PERCENT",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "markdown", "csv", "json"]),
    default="table",
    show_default=True,
    help="Output format.",
)
@output.file_option("--plot", "Also draw a chart, as .svg or .png.")
@click.option(
    "--chart",
    "charts",
    multiple=True,
    callback=split_names,
    metavar="NAME,...",
    help="Charts for --plot: epochs, times, pace, accuracy, loss, cores, ...  [default: speedup]",
)
@number_option(
    "--fail-below",
    "Exit with 3 when the interval's upper bound is below this, with 2 when there is no speed-up.",
    float,
    metavar="RATIO",
)
@output.export_options
@output.legend_option
@output.json_option
def command(paths: tuple[Path, ...], **options: Any) -> int:
    """Compare records: speed-ups with intervals, verdicts, accuracy, caveats.

    RECORD is a file or a folder of records.  [default: trainmark-results]
    """
    from trainmark.analysis import fail_below as gate
    from trainmark.analysis.agreement import agree, trainings
    from trainmark.analysis.comparison import compare
    from trainmark.analysis.reference import read_baseline
    from trainmark.record.store import load
    from trainmark.report.tables import tables_of

    plot = options["plot"]
    charts = options["charts"]
    fail_below = options["fail_below"]
    _require_plot(plot, charts)
    records = output.without_trials(load(paths))
    comparison = compare(
        records, options["by"], read_baseline(options["baseline"]), options["margin"] / 100
    )
    if len(comparison.by_workload) == len(comparison.groups) > 1 and not options["published"]:
        output.print_message(
            "nothing can be compared: the workloads, schedules or commands differ (`measure "
            "--vary` varies one command)"
        )
    outcome = None if fail_below is None else gate.fail_below(comparison, fail_below)
    if options["published"]:
        comparison = dataclasses.replace(comparison, published=agree(trainings(records)))
        if not comparison.published:
            output.print_message("none of these trainings has published figures")
    if options["reference"]:
        from trainmark.analysis.yardstick import device_references

        comparison = dataclasses.replace(comparison, references=device_references(comparison))
        if not comparison.references:
            output.print_message("no reference device has trained the same steps")
    if plot is not None:
        _plot(plot, charts or ("speedup",), comparison)
    output.export(comparison, options)
    form = "json" if options["as_json"] else options["form"]
    if form == "table":
        draw_all(console(), tables_of(comparison), legend=options["legend"])
    else:
        output.print_file(output.text_of(comparison, form))
    return OK if outcome is None else _exit_code(outcome, comparison)


def _require_plot(plot: Path | None, charts: tuple[str, ...]) -> None:
    """Check early that the charts can be drawn."""
    if plot is not None:
        from trainmark.report.files import require_charts, require_drawable

        require_drawable(plot)
        require_charts(charts)
    elif charts:
        raise UsageError("--chart needs --plot", fix="Add --plot FILE.svg or FILE.png.")


def _plot(path: Path, names: tuple[str, ...], comparison: Comparison) -> None:
    from trainmark.report.chart_data import chart_data
    from trainmark.report.charts import charts
    from trainmark.report.files import drawn

    every = chart_data(comparison)
    output.write_file(path, drawn(path, every, names))
    empty = [name for name in names if not charts(every, [name])]
    if empty:
        output.print_message(f"nothing to draw for {', '.join(empty)}")
    output.print_message(f"wrote {path}")


def _exit_code(outcome: FailBelow, comparison: Comparison) -> int:
    """Return the exit code of ``--fail-below``; print on stderr which groups don't clear the bar.

    Raises:
        UsageError: no group could be judged, so none can miss the bar.
    """
    threshold = f"the bar of {ratio(outcome.ratio)}"
    for group in outcome.missed:
        if not group.runs:
            why = "no run succeeded"
        elif not group.learns:
            why = "it does not learn"
        else:
            why = f"{ratio(group.speedup.ratio)}, at most {ratio(group.speedup.high)}"
        output.print_message(f"{_named(group)} misses {threshold}: {why}")
    for group in outcome.unjudged:
        known = group.speedup.at_least
        why = "it has no interval"
        if known is not None:
            why = f"only its lower bound is known, {ratio(known)}"
        output.print_message(f"{_named(group)} can't be judged by {threshold}: {why}")
    for group in outcome.disturbed:
        output.print_message(
            f"{_named(group)} can't be judged by {threshold}: other processes disturbed too "
            "many blocks"
        )
    if not (outcome.cleared or outcome.missed or outcome.disturbed):
        lacking = "speed-up"
        fix = "Give both folders, or another --by or --baseline."
        if any(group.speedup.ratio is not None for group in outcome.unjudged):
            lacking = "interval"
            fix = "Add rounds: --repeats 5."
        raise UsageError(
            f"no comparison could be judged by {threshold}",
            expected="rounds of two sides of the same workload, one of them the reference",
            found=f"{many(len(comparison.groups), 'group')} with no {lacking}",
            fix=fix,
        )
    return MISSED_BAR if outcome.missed else OK


def _named(group: GroupResult) -> str:
    from trainmark.report.comparison_table import title_of
    from trainmark.report.labels import labels

    return f"{title_of([group])}, {labels([group.key])[0]}"
