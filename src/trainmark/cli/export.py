"""``trainmark export``: write records in the formats of other tools."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from trainmark.cli.configuration.named_options import TrustedOption
from trainmark.cli.options import records_argument
from trainmark.cli.output import (
    json_option,
    print_json,
    print_message,
    text_of,
    without_trials,
    write_file,
)
from trainmark.errors import OutputError

FORMS = ("csv", "markdown", "tensorboard", "mlflow")

EPILOG = """\b
Examples:
  trainmark export trainmark-results/ --to csv -o runs.csv
  trainmark export trainmark-results/ --to markdown -o comment.md   for a pull request
  trainmark export trainmark-results/ --to tensorboard -o logs/     then: tensorboard --logdir logs
  trainmark export trainmark-results/ --to mlflow -o http://localhost:5000

\b
Records are read and never changed. TensorBoard needs `pip install 'trainmark[tensorboard]'`,
MLflow `pip install 'trainmark[mlflow]'`, which needs a server; for sqlite:///mlflow.db install the
full mlflow.
"""


@click.command("export", epilog=EPILOG)
@records_argument
@click.option("--to", "form", type=click.Choice(FORMS), required=True, help="Output format.")
@click.option(
    "-o",
    "--output",
    cls=TrustedOption,
    required=True,
    metavar="WHERE",
    help="A file; a folder for TensorBoard; a tracking URI for MLflow.",
)
@json_option
def command(paths: tuple[Path, ...], form: str, output: str, as_json: bool) -> None:
    """Write records for other tools: one line per run (csv), the comparison (markdown), or every
    number over time.

    RECORD is a file or a folder of records.
    """
    from trainmark.analysis.comparison import compare
    from trainmark.record.store import load
    from trainmark.report.csv_text import to_csv
    from trainmark.report.export.mlflow import to_mlflow
    from trainmark.report.export.tensorboard import to_tensorboard
    from trainmark.report.extras import require_extras
    from trainmark.report.runs_table import runs_table

    records = load(paths)
    written = [output]
    if form == "csv":
        write_file(Path(output), to_csv([runs_table(records)]).encode())
    elif form == "markdown":
        write_file(Path(output), text_of(compare(without_trials(records)), form).encode())
    elif form == "tensorboard":
        require_extras("tensorboard")
        with _reported(output, OSError):
            written = [str(folder) for folder in to_tensorboard(records, Path(output))]
    else:
        require_extras("mlflow")
        from mlflow.exceptions import MlflowException

        with _reported(output, OSError, MlflowException):
            written = to_mlflow(records, output)
    if as_json:
        print_json({"to": form, "records": len(records), "written": written})
    else:
        already = len(records) - len(written) if form == "mlflow" else 0
        there = f"; {already:,} already existed" if already else ""
        print_message(f"wrote {len(records) - already:,} records to {output}{there}")


@contextlib.contextmanager
def _reported(output: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn another library's exception into an error that says where it could not write."""
    try:
        yield
    except kinds as error:
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise OutputError(
            f"can't write to {output}", found=first_line, fix="Choose another place with -o."
        ) from error
