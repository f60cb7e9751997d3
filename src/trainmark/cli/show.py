"""``trainmark show``: a workload's layers and cost, or one record."""

from __future__ import annotations

from pathlib import Path

import click

from trainmark import regular
from trainmark.cli.complete import workload_or_file
from trainmark.cli.output import json_option, show
from trainmark.errors import UsageError

EPILOG = """\b
Examples:
  trainmark show mnist-cnn                       layers, shapes, parameters, FLOPs
  trainmark show my-network.toml                 the same for your own network
  trainmark show trainmark-results/<id>.json     one record as tables
"""


@click.command("show", epilog=EPILOG)
@click.argument("what", metavar="WORKLOAD|RECORD", shell_complete=workload_or_file)
@json_option
def command(what: str, as_json: bool) -> None:
    """Show a workload's layers and cost, or one record.

    A path that ends in .json is a record; anything else is a workload: a name of the catalogue, or
    a .toml file.
    """
    refuse_others(what)
    if what.endswith(".json"):
        from trainmark.record.store import load
        from trainmark.report.record_table import record_tables

        (record,) = load([Path(what)])
        show(record, record_tables(record), as_json=as_json)
    else:
        from trainmark.data.fit import require_fit
        from trainmark.report.layer_table import layer_data, layer_table
        from trainmark.workload import catalog

        workload = catalog.find(what)
        require_fit(workload)
        show(layer_data(workload), [layer_table(workload)], as_json=as_json)


def refuse_others(what: str) -> None:
    """Raise :class:`~trainmark.errors.UsageError` for a folder or a program."""
    from trainmark.workload import catalog

    path = Path(what)
    expected = "a workload or one record"
    if regular.is_folder(path) and what not in catalog.names():
        fix = f"Give one of its files, or run: trainmark compare {what}"
        raise UsageError(f"{what} is a folder", expected=expected, fix=fix)
    if path.suffix == ".py" or what in ("python", "python3"):
        script = path.name if path.suffix == ".py" else "train.py"
        fix = f"Run trainmark explain -- python {script}, or trainmark measure -- python {script}."
        raise UsageError(f"{what} is a program", expected=expected, fix=fix)
