"""``trainmark report``: one HTML page about records."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Any

import click

from trainmark.cli.options import PATH, baseline_option, masked_command_line, records_argument
from trainmark.cli.output import file_option, json_option, print_json, print_message, write_file

EPILOG = """\b
Examples:
  trainmark report trainmark-results/ -o report.html
  trainmark report cpu/ gpu/ --baseline device=cpu -o report.html
  trainmark explain mnist-cnn --json > why.json
  trainmark report trainmark-results/ --explanation why.json -o report.html

\b
The page is self-contained: it opens offline, also by double-click, and prints. It needs no
framework.
For examples with predictions: trainmark predict RECORD --grid FILE.
"""


@click.command("report", epilog=EPILOG)
@records_argument
@file_option("--output", "File for the page.", "-o", default=Path("report.html"))
@click.option(
    "--title",
    default="Training compared",
    show_default=True,
    metavar="WORDS",
    help="Title of the page.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@baseline_option
@click.option(
    "--explanation",
    "explanations",
    multiple=True,
    type=PATH,
    metavar="FILE",
    help="Output of trainmark explain --json to include.",
)
@json_option
def command(paths: tuple[Path, ...], **options: Any) -> None:
    """Write a page with the answer, tables and charts about records.

    RECORD is a file or a folder of records.  [default: trainmark-results]
    """
    from trainmark.analysis.comparison import compare
    from trainmark.analysis.reference import read_baseline
    from trainmark.analysis.sweep import without_trials
    from trainmark.record.store import load
    from trainmark.report.explained import read_explained
    from trainmark.report.extras import require_extras
    from trainmark.study.report import report
    from trainmark.version import version

    require_extras("report")
    records = load(paths)
    text = report(
        records,
        compare(without_trials(records), baseline=read_baseline(options["baseline"])),
        [read_explained(path) for path in options["explanations"]],
        title=options["title"],
        made_with=f"trainmark {version()}: {masked_command_line()}",
        warn=print_message,
    )
    output = options["output"]
    write_file(output, text)
    if options["as_json"]:
        print_json({"output": str(output), "records": len(records), "bytes": len(text)})
    else:
        print_message(f"wrote {output}")
    if options["opens"] and not webbrowser.open(output.absolute().as_uri()):
        print_message(f"no browser was found; open {output} yourself")
