"""``trainmark parity``: do backends, styles and devices compute what the definition says?"""

from __future__ import annotations

from typing import Any

import click

from trainmark.cli import options as shared
from trainmark.cli.complete import workload_or_file
from trainmark.cli.main import FAILED, OK
from trainmark.cli.output import json_option, legend_option, show, terminal_observer
from trainmark.units import many

EPILOG = """\b
Examples:
  trainmark parity mnist-mlp512 --backend torch,jax               two frameworks
  trainmark parity mnist-cnn --backend torch --style idiomatic,fast
  trainmark parity mnist-cnn --backend torch --device cpu,cuda:0   is the GPU correct?
  trainmark parity mnist-mlp128 --backend torch,torch@old --python old=/opt/old/bin/python

\b
Ten steps, including those around the end of an epoch, each start from the same state: weights,
optimiser, step count. Loss, gradients, update and new state are compared with a float64 reference.
The bound is what rounding may cause.

\b
Exit codes: 0 every side agrees; 1 a side differs or failed; 2 usage; 130 interrupted.
"""


@click.command("parity", epilog=EPILOG)
@click.argument("workload", metavar="WORKLOAD", shell_complete=workload_or_file)
@shared.backends_option
@shared.names_option(
    "--style", "idiomatic, compiled, fast.  [default: fast if the backend has it]", "a,b"
)
@shared.names_option("--device", "cpu, cuda:0, ...  [default: cpu]", "a,b")
@shared.count_option(
    "--steps", "Steps of the free training, which is shown but not judged.", default=10
)
@shared.seed_option("Seed of the weights and the order of batches.")
@shared.size_option
@shared.conditions_options
@shared.data_dir_option
@legend_option
@json_option
def command(**options: Any) -> int:
    """Check that a backend computes what the workload's definition says.

    Compares every side (a backend in a style on a device) with a float64 reference, step by step.
    If a side differs, it says which part is wrong: input, forward pass, loss, gradient, update,
    state, batch order or dropout.
    """
    from trainmark.report.parity_table import parity_tables
    from trainmark.study import parity

    progress = terminal_observer()
    with progress.preparing() as preparation:
        plan = parity.prepare(shared.request_of(options), options["steps"], preparation)
    for notice in plan.notices:
        progress.message(f"note: {notice}")
    sides = f"{many(len(plan.sides), 'side')}: {', '.join(side.title for side in plan.sides)}"
    with progress.working(f"{plan.scheduled.workload.name}, {sides}") as on_progress:
        found = parity.measure(plan, on_progress)
    show(found, parity_tables(found), as_json=options["as_json"], legend=options["legend"])
    return OK if found.passed else FAILED
