"""``trainmark scale``: how much faster are several devices, and do they still learn the same?"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.cli import options as shared
from trainmark.cli.complete import workload_or_file
from trainmark.cli.configuration.named_options import TrustedOption
from trainmark.cli.main import FAILED, OK
from trainmark.cli.output import (
    file_option,
    json_option,
    legend_option,
    show,
    terminal_observer,
    write_file,
)
from trainmark.errors import UsageError
from trainmark.units import many

if TYPE_CHECKING:
    from trainmark.analysis.scale import Scaling
    from trainmark.study.observer import StudyObserver
    from trainmark.study.scale import ScalePlan
    from trainmark.study.scale.question import Question

FOLDER = "scale"
"""Name of the folder in ``--out`` that gets the records."""

EPILOG = """\b
Examples:
  trainmark scale mnist-mlp512 --data-parallel 1,2             one copy, two copies
  trainmark scale mnist-cnn --data-parallel 1,2 --pipeline 1,2 --oversubscribe
  trainmark scale cifar10-cnn --weak --data-parallel 1,2,4,8 --device cuda:0
  trainmark scale mnist-cnn --data-parallel 1,2 --nnodes 2 --rdzv-endpoint node1:29400
                                                               run this on each of two machines

\b
Every layout is trained once in float64 to compare its losses. Then all layouts and one device are
timed in interleaved rounds, with and without averaging gradients.

\b
Exit codes: 0 the losses of every layout match those of one device; 1 losses differ, or a run
failed; 2 usage; 130 interrupted.
"""


def _numbers(_context: click.Context, param: click.Parameter, text: str) -> tuple[int, ...]:
    """Parse ``1,2,4``; each number is at least 1."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise click.BadParameter(
            f"expected whole numbers above 0 such as 1,2,4, found {text!r}", param=param
        )
    return tuple(dict.fromkeys(int(part) for part in parts))


@click.command("scale", epilog=EPILOG)
@click.argument("workload", metavar="WORKLOAD", shell_complete=workload_or_file)
@click.option(
    "--data-parallel",
    default="1,2",
    show_default=True,
    metavar="N,N",
    callback=_numbers,
    help="Copies of the network.",
)
@click.option(
    "--pipeline",
    default="1",
    show_default=True,
    metavar="N,N",
    callback=_numbers,
    help="Stages per copy.",
)
@shared.count_option("--microbatches", "Microbatches per batch of a pipeline.  [default: 4]")
@click.option(
    "--strong/--weak",
    default=True,
    help="Copies share one batch, or each has a whole one.  [default: strong]",
)
@shared.count_option("--batch-size", "Examples per step on one device; overrides the workload.")
@click.option("--oversubscribe", is_flag=True, help="Allow more ranks than cores.")
@shared.count_option("--nnodes", "Number of machines; run the same command on each.  [default: 1]")
@click.option(
    "--rdzv-endpoint",
    cls=TrustedOption,
    metavar="HOST:PORT",
    help="Rendezvous address, on one of the machines.",
)
@shared.number_option(
    "--rdzv-timeout",
    "Seconds to wait for the other machines.",
    click.FloatRange(1),
    default=60.0,
    metavar="S",
)
@shared.names_option("--backend", "torch or jax.  [default: the best installed]", "NAME")
@shared.names_option("--style", "idiomatic or fast.  [default: fast]", "NAME")
@shared.names_option(
    "--device", "cpu, or cuda:0 (rank k uses cuda:k).  [default: GPU if available]", "NAME"
)
@shared.repeats_option()
@shared.count_option("--steps", "Steps whose losses are compared.", default=120, least=2)
@shared.seed_option("Seed of the first round.")
@shared.size_option
@shared.conditions_options
@shared.label_option
@file_option("--plot", "Draw the scaling curve: FILE.svg or FILE.png.")
@shared.resume_option
@shared.data_dir_option
@shared.out_option(f"Folder for the records, in its sub-folder {FOLDER}.")
@legend_option
@json_option
def command(**options: Any) -> int:
    """Compare training on several devices with training on one.

    Copies of the network share each batch and average their gradients; a pipeline splits each copy
    into stages. Every rank has the same number of threads in all layouts.
    """
    from trainmark.record.store import Store, safe_name
    from trainmark.report.scale_table import scale_tables
    from trainmark.study import scale
    from trainmark.study.earlier import earlier_records

    progress = terminal_observer()
    if options["plot"] is not None:
        from trainmark.report.files import require_drawable

        require_drawable(options["plot"])
    with progress.preparing() as preparation:
        training = {**options}
        for name in ("repeats", "steps"):
            del training[name]
        plan = scale.prepare(shared.request_of(training), _question(options), preparation)
    for notice in plan.notices:
        progress.message(f"note: {notice}")
    folder = options["out"] / FOLDER
    if plan.question.rendezvous.nodes > 1:
        # Machines may share a disk, but must not wait for each other's lock.
        folder /= safe_name(platform.node())
    store = Store(folder)
    with store.locked():
        progress.message(_announcement(plan))
        earlier = earlier_records(store, progress) if options["resume"] else []
        with progress.running(plan.tasks, store.folder) as observer:
            records = scale.measure(plan, store, observer, earlier, labels=options["labels"])
    found = scale.conclude(plan, records)
    show(found, scale_tables(found), as_json=options["as_json"], legend=options["legend"])
    if options["plot"] is not None:
        _plot(found, options["plot"], progress)
    progress.message(f"Records: {store.folder}")
    # A machine without rank 0 has no record of the whole training, only those of its ranks.
    all_finished = all(record.outcome.status == "ok" for record in records)
    return OK if found.passed and all_finished else FAILED


def _question(options: dict[str, Any]) -> Question:
    from trainmark.execute.parent import rendezvous
    from trainmark.study.scale.question import Question

    nodes = options["nnodes"]
    endpoint = options["rdzv_endpoint"]
    _require_meant(options)
    if nodes is None:
        nodes, found = rendezvous.from_slurm(os.environ) or (1, None)
        endpoint = endpoint or found
    return Question(
        data=options["data_parallel"],
        pipeline=options["pipeline"],
        weak=not options["strong"],
        batch=options["batch_size"],
        microbatches=options["microbatches"],
        oversubscribe=options["oversubscribe"],
        rendezvous=rendezvous.meet(
            nodes, endpoint, options["rdzv_timeout"], rendezvous.local_network()
        ),
        repeats=options["repeats"],
        steps=options["steps"],
    )


def _require_meant(options: dict[str, Any]) -> None:
    """Refuse options without effect.

    Otherwise two machines could each train alone and report success.
    """
    if options["rdzv_endpoint"] and not options["nnodes"]:
        raise UsageError("--rdzv-endpoint has no effect here", expected="--nnodes N as well")
    if options["microbatches"] and max(options["pipeline"]) == 1:
        raise UsageError(
            "--microbatches has no effect here", expected="--pipeline with 2 or more as well"
        )


def _announcement(plan: ScalePlan) -> str:
    layouts = ", ".join(f"{data}×{stages}" for data, stages in plan.question.layouts)
    threads = plan.settings.threads
    each = "" if threads is None else f", {many(threads, 'thread')} per rank in all of them"
    runs = many(len(plan.tasks), "run")
    name = plan.scheduled.workload.name
    return f"{runs}: {name} on {plan.side.title}, {layouts} (copies × stages){each}."


def _plot(found: Scaling, path: Path, progress: StudyObserver) -> None:
    from trainmark.report.charts.scaling import scaling_chart
    from trainmark.report.files import in_format_of

    chart = scaling_chart(found)
    if chart is None:
        progress.message("Nothing to draw.")
        return
    write_file(path, in_format_of(path, [chart]))
    progress.message(f"Wrote {path}.")
