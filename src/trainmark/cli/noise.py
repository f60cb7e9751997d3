"""``trainmark noise``: how small a difference can this machine detect?"""

from __future__ import annotations

from typing import Any

import click

from trainmark.cli import options as shared
from trainmark.cli.complete import workload_or_file
from trainmark.cli.output import json_option, show, terminal_observer

FOLDER = "noise"
"""Name of the folder in ``--out`` that gets the records."""

EPILOG = """\b
Examples:
  trainmark noise                                   the default benchmark, for a minute
  trainmark noise mnist-mlp128 --backend torch --threads 1 --budget 300

\b
Exit codes: 0 done; 1 a process failed; 2 usage; 130 interrupted.
"""


@click.command("noise", epilog=EPILOG)
@click.argument("workload", metavar="[WORKLOAD]", required=False, shell_complete=workload_or_file)
@shared.names_option("--backend", "One backend.  [default: the best installed]", "NAME")
@shared.names_option("--style", "idiomatic, compiled or fast.  [default: idiomatic]", "NAME")
@shared.names_option("--device", "cpu, cuda:0, ...  [default: the backend's first device]", "NAME")
@shared.number_option(
    "--budget", "Seconds to measure for.", click.FloatRange(0), default=60.0, metavar="S"
)
@shared.margin_option
@shared.seed_option("Seed of the first round.")
@shared.conditions_options
@shared.label_option
@shared.data_dir_option
@shared.out_option(f"Folder for the records, in its sub-folder {FOLDER}.")
@json_option
def command(**options: Any) -> None:
    """Compare a training with itself: how small a difference can this machine detect, and how long
    does that take?

    Two identical sides are interleaved as in `trainmark run`. Any difference between them is noise:
    from other programs, clock frequency or memory layout.
    """
    from trainmark.record.store import Store
    from trainmark.report.noise_table import noise_table
    from trainmark.study import noise
    from trainmark.study.chosen import choose
    from trainmark.study.rounds import Budget

    progress = terminal_observer()
    request = shared.request_of({**options, "style": options["style"] or ("idiomatic",)})
    with progress.preparing() as preparation:
        chosen = choose(request, preparation)
    budget = Budget(options["budget"], options["margin"] / 100)
    found = noise.measure(
        chosen, Store(options["out"] / FOLDER), progress, budget, options["labels"]
    )
    show(found, [noise_table(found)], as_json=options["as_json"])
