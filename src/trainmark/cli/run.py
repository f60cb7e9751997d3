"""``trainmark run``: train, keep a record of each run, compare."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.cli import options as shared
from trainmark.cli.complete import workload_or_file
from trainmark.cli.output import console, json_option, made_before, print_json
from trainmark.cli.request import request_of
from trainmark.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from trainmark.execute.parent.peaks import Key
    from trainmark.execute.parent.plan import Run
    from trainmark.execute.parent.request import Prepared, Request
    from trainmark.execute.parent.task import Task
    from trainmark.record.record import Peaks, Record
    from trainmark.record.store import Store

EPILOG = """\b
Examples:
  trainmark run
  trainmark run mnist-mlp128 mnist-cnn --backend torch,numpy --repeats 3
  trainmark run mnist-cnn --device cpu,cuda:0 --style fast --epochs 5
  trainmark run mnist-mlp32 --published
  trainmark run my-workload.toml --backend torch,torch@old --python old=/opt/old/bin/python

\b
Exit codes: 0 done; 1 a run failed or diverged; 2 usage; 130 interrupted.
"""


@click.command("run", epilog=EPILOG)
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...", shell_complete=workload_or_file)
@shared.names_option(
    "--backend", "Backends; NAME@LABEL runs in --python LABEL.  [default: the best installed one]", "a,b@LABEL"
)
@shared.names_option(
    "--style",
    "idiomatic (the framework's tutorial loop), compiled (the same loop through its compiler), fast (the fastest loop "
    "of its public API); examples/recipes has each as a short script.  [default: idiomatic,fast]",
    "a,b",
)
@shared.names_option("--device", "cpu, cuda:0, ...  [default: all that the backend sees]", "a,b")
@shared.repeats_option("Rounds.  [default: 5; 1 with --published]", default=None)
@shared.until_stable_option
@shared.count_option("--epochs", "Epochs per run, instead of the workload's own.")
@shared.count_option("--steps", "Steps per run, instead of epochs.")
@click.option(
    "--until",
    metavar="TARGET",
    help="Stop after the first epoch that reaches, say, 'test_accuracy>=0.98', or after --epochs.  [default: 100]",
)
@shared.seed_option("Seed of the first round.")
@click.option("--published", is_flag=True, help="Run exactly the published protocol.")
@click.option(
    "--protocol",
    type=click.Choice(["fresh", "continued"]),
    help="fresh: new weights in each repeat; continued: the previous repeat's weights, in one process.",
)
@shared.precision_option
@shared.threads_option
@click.option(
    "--memory-fraction",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="F",
    help="Largest fraction of the GPU's memory to use, 0 to 1.",
)
@shared.python_option
@shared.dataset_option
@shared.count_option("--dataset-repeats", "Passes over the dataset per epoch.")
@click.option(
    "--weights-from", type=click.Path(path_type=Path), metavar="RECORD", help="Start from a record's weights."
)
@click.option("--save-weights", is_flag=True, help="Save each run's weights next to its record.")
@click.option(
    "--log-every", type=click.IntRange(1), metavar="STEPS", help="Print step, loss and samples/s every STEPS steps."
)
@shared.price_option
@shared.label_option
@shared.timeout_option
@shared.resume_option
@shared.data_dir_option
@shared.out_option()
@json_option
def command(**options: Any) -> int:
    """Train workloads on backends and devices, record each run, and compare them.

    WORKLOAD is a name (see `trainmark list workloads`) or a TOML file. Without one, mnist-mlp512 is trained with the
    best installed backend, in the styles idiomatic and fast, on every device, in 5 interleaved rounds.
    """
    from trainmark.record.store import Store

    store = Store(options["out"])
    for other in ("resume", "published"):
        if options["until_stable"] is not None and options[other]:
            raise UsageError(f"--until-stable can't be combined with --{other}", fix="Leave one of them out.")
    records, earlier = train(
        request_of(options),
        store,
        console(to_stderr=True),
        resume=options["resume"],
        until_stable=options["until_stable"],
        labels=options["labels"],
    )
    show_records(records, earlier, store, as_json=options["as_json"])
    return 1 if any(record.outcome.status != "ok" for record in records) else 0


def train(
    request: Request,
    store: Store,
    screen: Console,
    *,
    resume: bool = False,
    until_stable: float | None = None,
    labels: Mapping[str, str] | None = None,
) -> tuple[list[Record], list[Record]]:
    """Carry out ``request`` and show progress.

    Args:
        store: where the records are kept.
        screen: where the progress is drawn.
        resume: run only what has no record there.
        until_stable: percent; add rounds until the intervals are within it.
        labels: of this machine, for the records.

    Returns:
        The new records and, with ``resume``, the earlier ones.
    """
    from trainmark.cli.progress import DataProgress, RunProgress
    from trainmark.execute.parent import request as requests
    from trainmark.execute.parent.here import look_around
    from trainmark.execute.parent.scheduler import execute
    from trainmark.execute.parent.task import remaining
    from trainmark.measure.sampler import Sampler
    from trainmark.study.stable import rounds_until_stable

    with DataProgress(screen) as data_progress:
        prepared = requests.prepare(request, data_progress)
    if until_stable is not None:
        _require_rounds(prepared)
    for notice in prepared.notices:
        screen.print(f"note: {notice}", soft_wrap=True, markup=False)
    told = partial(screen.print, soft_wrap=True, markup=False, highlight=False)
    here = partial(look_around, labels)
    with store.locked():
        earlier = made_before(store) if resume else []
        planned = sum(len(task.runs) for task in prepared.tasks)
        if resume:
            prepared = dataclasses.replace(prepared, tasks=remaining(prepared.tasks, earlier))
        left = sum(len(task.runs) - len(task.done) for task in prepared.tasks)
        if left:
            screen.print(_plan(prepared.tasks, planned - left), soft_wrap=True, markup=False, highlight=False)
        peaks = _measure_limits(prepared, request.cache, screen) if left else {}
        sampler = Sampler()

        def carry_out(tasks: list[Task[Run]]) -> list[Record]:
            with RunProgress(screen, tasks, store.folder, log=request.settings.log_every is not None) as progress:
                return execute(tasks, prepared.seen, store, progress, here, sampler, peaks)

        if until_stable is None:
            return carry_out(prepared.tasks), earlier
        return rounds_until_stable(prepared.tasks, carry_out, until_stable, told=told), earlier


def _require_rounds(prepared: Prepared) -> None:
    """Refuse repeats that continue each other: they are not rounds."""
    for task in prepared.tasks:
        workload = task.first.course.workload
        if workload.schedule.protocol == "continued":
            raise UsageError(
                f"--until-stable needs independent rounds, but the repeats of {workload.name} continue each other",
                fix="Use --protocol fresh.",
            )


def _measure_limits(prepared: Prepared, cache: Path, screen: Console) -> dict[Key, Peaks]:
    """The measured peaks of the devices; from an earlier command if nothing has changed since."""
    from trainmark.cli.progress import DataProgress
    from trainmark.execute.parent.here import look_around
    from trainmark.execute.parent.peaks import Keep, find_peaks

    with DataProgress(screen) as progress:
        keep = Keep(cache / "limits")
        places = [(task.first.side, task.first.settings.threads) for task in prepared.tasks]
        return find_peaks(places, prepared.seen, keep, look_around, progress.measuring)


def _plan(tasks: list[Task[Run]], resumed: int) -> str:
    """The plan, in a sentence or two."""
    from trainmark.units import many

    sides = list(dict.fromkeys(task.first.side.title for task in tasks))
    workloads = list(dict.fromkeys(task.first.course.workload.name for task in tasks))
    runs = sum(len(task.runs) - len(task.done) for task in tasks)
    rounds = max(task.runs[-1].round for task in tasks) + 1
    text = f"{many(runs, 'run')}: {', '.join(workloads)} on {', '.join(sides)}, {many(rounds, 'round')}."
    if len(workloads) > 1:
        text += " Sides are compared within one workload, never one workload with another."
    return text + what_is_kept(resumed)


def what_is_kept(resumed: int) -> str:
    """What ``--resume`` found, and what Ctrl-C leaves; ends the announcement of a plan."""
    from trainmark.units import many

    found = f" {many(resumed, 'run')} already recorded." if resumed else ""
    return f"{found} Ctrl-C keeps finished runs; --resume continues."


def show_records(records: list[Record], earlier: list[Record], store: Store, *, as_json: bool) -> None:
    """Print the new records as JSON, or compare them with the earlier ones of the same plan."""
    if as_json:
        print_json(records)
        return
    from trainmark.analysis.comparison import compare
    from trainmark.report.tables import print_comparison
    from trainmark.units import many

    screen = console()
    groups = {record.group.id for record in records}
    shown = [record for record in earlier if record.group.id in groups] + records
    if any(record.outcome.status == "ok" for record in shown):
        print_comparison(screen, compare(shown))
    total = len(list(store.folder.glob("*.json")))
    news = (
        f"{many(len(records), 'new record')}, {total:,} in all"
        if records
        else "Nothing to do: every run already has a record"
    )
    again = f"trainmark compare {shlex.quote(str(store.folder))}"
    screen.print(f"\n{news}, in {store.folder}. To compare them: {again}", soft_wrap=True, markup=False)
