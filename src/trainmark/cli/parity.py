"""``trainmark parity``: do backends, styles and devices compute the same thing?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from trainmark.cli import options as shared
from trainmark.cli.complete import workload_or_file
from trainmark.cli.main import FAILED, OK
from trainmark.cli.output import json_option, legend_option, show
from trainmark.units import many

if TYPE_CHECKING:
    from trainmark.execute.parent.request import Prepared

FOLDER = "parity"

EPILOG = """\b
Examples:
  trainmark parity mnist-mlp512 --backend torch,jax               two frameworks
  trainmark parity mnist-cnn --backend torch --style idiomatic,fast
  trainmark parity mnist-cnn --backend torch --device cpu,cuda:0   is the GPU correct?
  trainmark parity mnist-mlp128 --backend torch,torch@old --python old=/opt/old/bin/python

\b
Every side is trained once unchanged and three times from initial weights changed by one unit in the last place. The
tolerance is three times the resulting change of the losses.

\b
Exit codes: 0 every pair agrees; 1 a pair differs, or a run failed; 2 usage; 130 interrupted.
"""


@click.command("parity", epilog=EPILOG)
@click.argument("workload", metavar="WORKLOAD", shell_complete=workload_or_file)
@shared.names_option(
    "--backend", "Backends; NAME@LABEL runs in --python LABEL.  [default: the best installed one]", "a,b@LABEL"
)
@shared.names_option("--style", "idiomatic, compiled, fast.  [default: fast if the backend has it]", "a,b")
@shared.names_option("--device", "cpu, cuda:0, ...  [default: cpu]", "a,b")
@shared.count_option("--steps", "Steps per side.", default=100)
@shared.seed_option("Seed of the weights.")
@shared.conditions_options
@shared.data_dir_option
@shared.out_option(f"Folder for the records, in its sub-folder {FOLDER}; don't compare their timings.")
@legend_option
@json_option
def command(**options: Any) -> int:
    """Check that sides with the same weights and batches, without dropout, compute the same losses.

    Compares every pair of sides (a backend in a style on a device) step by step. The tolerance is measured, not
    chosen.
    """
    from trainmark.progress.terminal import TerminalProgress
    from trainmark.record.store import Store
    from trainmark.report.parity_table import parity_tables
    from trainmark.study import parity

    progress = TerminalProgress()
    with progress.preparing() as watcher:
        plan = parity.prepare(shared.request_of(options), watcher)
    for notice in plan.notices:
        progress.say(f"note: {notice}")
    store = Store(options["out"] / FOLDER)
    with store.locked():
        progress.say(_announcement(plan))
        with progress.running(plan.tasks, store.folder, resumes=False) as observer:
            found = parity.measure(plan, store, observer)
    show(found, parity_tables(found), as_json=options["as_json"], legend=options["legend"])
    progress.say(f"Records: {store.folder}")
    return OK if found.passed else FAILED


def _announcement(plan: Prepared) -> str:
    from trainmark.analysis.parity import NUDGES

    sides = ", ".join(side.title for side in plan.sides)
    runs, workload = many(len(plan.tasks), "run"), plan.tasks[0].first.course.workload
    return f"{runs}: {workload.name} on {sides}, each unchanged and with {many(NUDGES, 'nudge')}."
