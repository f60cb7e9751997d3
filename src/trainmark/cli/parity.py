"""``trainmark parity``: do backends, styles and devices compute the same thing?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from trainmark.cli import options as shared
from trainmark.cli.complete import workload_or_file
from trainmark.cli.main import FAILED, OK
from trainmark.cli.output import console, json_option, print_json
from trainmark.cli.request import request_of

if TYPE_CHECKING:
    from trainmark.analysis.parity import Parity
    from trainmark.study.parity import Plan

FOLDER = "parity"

EPILOG = """\b
Examples:
  trainmark parity mnist-mlp512 --backend torch,jax               two frameworks
  trainmark parity mnist-cnn --backend torch --style idiomatic,fast
  trainmark parity mnist-cnn --backend torch --device cpu,cuda:0   is the GPU right?
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
@json_option
def command(**options: Any) -> int:
    """Check that sides with the same weights and batches, without dropout, compute the same losses.

    Compares every pair of sides (a backend in a style on a device) step by step. The tolerance is measured, not
    chosen.
    """
    from trainmark.cli.progress import DataProgress, RunProgress
    from trainmark.record.store import Store
    from trainmark.study import parity

    screen = console(to_stderr=True)
    with DataProgress(screen) as data_progress:
        plan = parity.prepare(request_of(options), data_progress)
    for notice in plan.notices:
        screen.print(f"note: {notice}", soft_wrap=True, markup=False)
    store = Store(options["out"] / FOLDER)
    with store.locked():
        screen.print(_announcement(plan), soft_wrap=True, markup=False, highlight=False)
        with RunProgress(screen, plan.tasks, store.folder, resumes=False) as progress:
            found = parity.measure(plan, store, progress)
    _show(found, as_json=options["as_json"])
    screen.print(f"Records: {store.folder}", soft_wrap=True, markup=False, highlight=False)
    return OK if found.passed else FAILED


def _announcement(plan: Plan) -> str:
    from trainmark.analysis.parity import NUDGES
    from trainmark.units import many

    sides = ", ".join(side.title for side in plan.sides)
    runs = many(len(plan.tasks), "run")
    return f"{runs}: {plan.course.workload.name} on {sides}, each unchanged and with {many(NUDGES, 'nudge')}."


def _show(found: Parity, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    from trainmark.report.parity_table import parity_tables
    from trainmark.report.terminal import draw_all

    draw_all(console(), parity_tables(found))
