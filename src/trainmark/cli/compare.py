"""``trainmark compare``: records beside each other, with intervals, verdicts and caveats."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from trainmark.cli.main import MISSED_BAR, OK
from trainmark.cli.output import console, json_option, print_json

if TYPE_CHECKING:
    from trainmark.analysis.groups import Dimension
    from trainmark.analysis.results import Comparison, GroupResult

Format = Literal["table", "markdown", "csv", "json"]

EPILOG = """\b
Examples:
  trainmark compare trainmark-results/                        everything against the first measured
  trainmark compare trainmark-results/ --by device --baseline device=cpu
  trainmark compare old/ new/ --by python --fail-below 0.95   for CI: exit code 3 when surely slower
  trainmark compare trainmark-results/ --published            beside what was published
"""


def _from_zero(_context: click.Context, param: click.Parameter, number: float | None) -> float | None:
    if number is not None and not (math.isfinite(number) and number >= 0):
        raise click.BadParameter(f"expected a number from 0, found {number}", param=param)
    return number


def _above_zero(context: click.Context, param: click.Parameter, number: float | None) -> float | None:
    if number == 0:
        raise click.BadParameter("expected a number above 0, found 0", param=param)
    return _from_zero(context, param, number)


def _split(_context: click.Context, param: click.Parameter, text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    key, sign, value = text.partition("=")
    if not (key and sign and value):
        raise click.BadParameter(f"expected KEY=VALUE such as device=cpu, found {text!r}", param=param)
    return key, value


@click.command("compare", epilog=EPILOG)
@click.argument("paths", metavar="RECORD...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--by",
    type=click.Choice(["device", "backend", "style", "machine", "python"]),
    help="Compare along this alone, all else being equal.",
)
@click.option("--baseline", metavar="KEY=VALUE", callback=_split, help="What the speed-ups start from.")
@click.option("--published", is_flag=True, help="Put what was published beside it: agrees or differs?")
@click.option("--reference", is_flag=True, help="Put devices beside it whose pace is known: your model, and others.")
@click.option(
    "--margin",
    metavar="PERCENT",
    type=float,
    callback=_from_zero,
    default=3.0,
    show_default=True,
    help="Speeds this near count as the same.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "markdown", "csv", "json"]),
    default="table",
    show_default=True,
    help="How it is written.",
)
@click.option(
    "--fail-below",
    metavar="RATIO",
    type=float,
    callback=_above_zero,
    help="Exit with 3 when a speed-up is surely below this.",
)
@json_option
def command(
    paths: tuple[Path, ...],
    by: Dimension | None,
    baseline: tuple[str, str] | None,
    published: bool,
    reference: bool,
    margin: float,
    form: Format,
    fail_below: float | None,
    as_json: bool,
) -> int:
    """Compare records: speed-ups with intervals, verdicts, accuracy, caveats.

    RECORD is a file or a folder of records.
    """
    import dataclasses

    from trainmark.analysis.agreement import agree
    from trainmark.analysis.comparison import compare
    from trainmark.record.store import load

    records = load(paths)
    comparison = compare(records, by, baseline, margin / 100)
    if published:
        comparison = dataclasses.replace(comparison, published=agree(records))
        if not comparison.published:
            click.echo("trainmark: nothing was published about these workloads", err=True)
    if reference:
        from trainmark.analysis.yardstick import beside

        comparison = dataclasses.replace(comparison, references=beside(comparison))
        if not comparison.references:
            click.echo("trainmark: no device is known that trained the same steps", err=True)
    _show(comparison, "json" if as_json else form)
    return OK if fail_below is None else _hold_against(comparison, fail_below)


def _show(comparison: Comparison, form: Format) -> None:
    if form == "json":
        print_json(comparison)
        return
    from trainmark.report import tables

    if form == "markdown":
        click.echo(tables.comparison_markdown(comparison), nl=False)
    elif form == "csv":
        click.echo(tables.comparison_csv(comparison), nl=False)
    else:
        tables.print_comparison(console(), comparison)


def _hold_against(comparison: Comparison, ratio: float) -> int:
    """The exit code of ``--fail-below``; what misses the bar, and what can't be judged, goes to stderr."""
    from trainmark.analysis.bar import fail_below
    from trainmark.record.caveats import Caveat
    from trainmark.units import ratio as written

    bar = fail_below(comparison, ratio)
    for group in bar.missed:
        if not group.runs:
            why = "no run came off"
        elif Caveat.NOT_LEARNING in group.caveats:
            why = "it does not learn"
        else:
            why = f"{written(group.speedup.ratio)}, at most {written(group.speedup.high)}"
        click.echo(f"trainmark: {_named(group)} misses the bar of {written(ratio)}: {why}", err=True)
    for group in bar.unjudged:
        click.echo(
            f"trainmark: {_named(group)} can't be held against the bar of {written(ratio)}: it has no interval",
            err=True,
        )
    if not (bar.cleared or bar.missed or bar.unjudged):
        click.echo(f"trainmark: nothing was held against the bar of {written(ratio)}", err=True)
    return MISSED_BAR if bar.missed else OK


def _named(group: GroupResult) -> str:
    from trainmark.units import count

    key = group.key
    return f"{key.workload} ({count(group.epochs, 'epochs')}), {key.backend} {key.style} on {key.device}"
