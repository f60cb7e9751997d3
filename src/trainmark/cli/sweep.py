"""``trainmark sweep``: which hyper-parameters are best?"""

from __future__ import annotations

import contextlib
import math
import shlex
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from trainmark.cli.complete import workload_or_file
from trainmark.cli.main import FAILED, OK
from trainmark.cli.options import (
    cache_dir,
    count_option,
    data_dir_option,
    dataset_option,
    name_option,
    out_option,
    precision_option,
    python_option,
    resume_option,
    seed_option,
    timeout_option,
)
from trainmark.cli.output import console, json_option, print_json
from trainmark.cli.request import request_of

if TYPE_CHECKING:
    from rich.console import Console

    from trainmark.record.store import Store
    from trainmark.study.sweep.cluster import Cluster, Resources
    from trainmark.study.sweep.plan import Plan

FOLDER = "sweep"

EPILOG = """\b
Examples:
  trainmark sweep mnist-mlp128 --grid learning_rate=0.1,0.03,0.01 hidden=32,128
  trainmark sweep mnist-cnn --grid dropout=0.2,0.5 --grid seed=1,2,3 --parallel 2 --threads 1
  trainmark sweep mnist-cnn --grid learning_rate=0.1,0.01 --device cuda:0 --gpus-per-trial 0.5
  trainmark sweep mnist-cnn --grid seed=1,2 --data-parallel 2 --pipeline 2 --parallel 2    8 ranks
  trainmark sweep my.toml --grid optimizer.beta1=0.8,0.9 'model[1].units=64,128' --address ray://head:10001

\b
Keys: learning_rate, momentum, weight_decay, rho, beta1, beta2, epsilon, batch_size, epochs, steps, dropout, hidden (the
units of all dense layers but the last), seed; or the path of any value in the workload's file.

\b
Exit codes: 0 every trial finished; 1 a trial failed or diverged; 2 usage; 130 interrupted.
"""


class _GridWords(click.Command):
    """Lets several words follow one ``--grid``, which click's options can't."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, with ``--grid`` put before each word of the grid."""
        written: list[str] = []
        in_grid = False
        for word in args:
            is_pair = "=" in word and not word.startswith("-")
            if in_grid and is_pair and written[-1] != "--grid":
                written.append("--grid")
            written.append(word)
            in_grid = word == "--grid" or (in_grid and is_pair)
        return super().parse_args(ctx, written)


@click.command("sweep", cls=_GridWords, epilog=EPILOG)
@click.argument("workload", metavar="WORKLOAD", shell_complete=workload_or_file)
@click.option(
    "--grid",
    "grids",
    multiple=True,
    metavar="KEY=A,B...",
    help="What is varied; every combination is a trial. May be given several times.",
)
@count_option("--parallel", "Most trials at a time; as many as there are cores or GPUs for, if not given.")
@click.option("--address", metavar="RAY", help="A Ray cluster: auto, HOST:PORT or ray://HOST:PORT; else this machine.")
@click.option(
    "--cpus-per-trial",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Cores set aside for a trial; its --threads times its ranks if not given.",
)
@click.option(
    "--gpus-per-trial",
    type=click.FloatRange(0),
    metavar="F",
    help="GPUs set aside for a trial, a fraction to share one; 1 on a GPU, if not given.",
)
@count_option("--retries", "For a trial whose worker died.", default=1, least=0)
@name_option("--backend", "The best installed one if not given. NAME@LABEL runs in --python LABEL.")
@name_option("--style", "idiomatic, compiled or fast; fast, where the backend has it, if not given.")
@name_option("--device", "cpu, cuda:0, ...; an accelerator where there is one, if not given.")
@count_option("--data-parallel", "Copies of a trial's network, a rank each.")
@count_option("--pipeline", "Stages of each copy, a rank each.")
@count_option("--epochs", "Epochs a trial, instead of the workload's own.")
@count_option("--steps", "Steps a trial, instead of epochs.")
@seed_option("Of every trial.")
@precision_option
@count_option("--threads", "CPU threads of a trial; --cpus-per-trial or 1 if not given.")
@python_option
@dataset_option
@timeout_option
@resume_option
@data_dir_option
@out_option(f"Folder for the records, which stand in its sub-folder {FOLDER}: they are not for comparing speeds.")
@json_option
def command(**options: Any) -> int:
    """Train every combination of hyper-parameters, several at a time, and say which is best.

    Each trial is an ordinary run in a process of its own and leaves an ordinary record. Ray hands them out: on this
    machine, with nothing to start, or on the cluster at --address.
    """
    from trainmark.cli.progress import DataProgress
    from trainmark.execute.probe import probe
    from trainmark.record.store import Store
    from trainmark.study.sweep import cluster, plan

    cluster.require_ray()
    request = request_of({**options, "threads": _threads(options)})
    points = plan.read(request, options["grids"])
    screen = console(to_stderr=True)
    store = Store(options["out"] / FOLDER)
    with contextlib.ExitStack() as stack:
        there: Cluster | None = None
        if options["address"]:  # only a node can tell what it can do
            gpus = float(_ranks(options)) if (options["device"] or "").startswith("cuda") else 0.0
            there = stack.enter_context(cluster.at(options["address"], _resources(options, gpus)))
        with DataProgress(screen) as data_progress:
            planned = plan.prepare(
                request,
                points,
                cache_dir(),
                progress=data_progress,
                asking=data_progress.asking,
                ask=there.ask if there else probe,
                layout=_layout(options),
            )
        needs = _resources(options, float(_ranks(options)) if planned.side.device.startswith("cuda") else 0.0)
        plan.require_own_gpu(planned.side.device, needs.gpus, _ranks(options))
        if there is not None:
            there.reserve(needs)
        stack.enter_context(store.locked())
        if options["resume"]:
            planned = plan.without_done(planned, store.read_all())
        if planned.tasks:
            if there is None:
                there = stack.enter_context(cluster.local(needs, options["parallel"], plan.accelerators(planned)))
            _carry_out(planned, there, store, screen, options)
    return _show(planned.group_id, store, screen, as_json=options["as_json"])


def _carry_out(planned: Plan, there: Cluster, store: Store, screen: Console, options: dict[str, Any]) -> None:
    from trainmark.cli.trial_progress import TrialProgress
    from trainmark.measure.host import usable_core_numbers
    from trainmark.study.sweep.turns import carry_out
    from trainmark.units import many

    at_once = min(options["parallel"] or there.slots, there.slots, len(planned.tasks))
    tell = partial(screen.print, soft_wrap=True, markup=False, highlight=False)
    tell(_announcement(planned, at_once, there.resources))
    cores = len(usable_core_numbers())
    if options["address"] is None and at_once * there.resources.cpus > cores:
        tell(f"note: that is more than this machine's {many(cores, 'core')}, so trials wait for each other")
    with TrialProgress(screen, len(planned.tasks), planned.trials - len(planned.tasks)) as progress:
        try:
            carry_out(planned.tasks, planned.seen, there, store, progress, at_once=at_once, retries=options["retries"])
        except KeyboardInterrupt:
            progress.interrupted(store.folder)
            raise


def _threads(options: dict[str, Any]) -> int:
    """Of a trial: never the framework's own choice, which is every core for each of several trials."""
    return options["threads"] or max(1, math.floor((options["cpus_per_trial"] or 1) / _ranks(options)))


def _ranks(options: dict[str, Any]) -> int:
    """Processes of a trial."""
    copies, stages = options["data_parallel"] or 1, options["pipeline"] or 1
    ranks: int = copies * stages
    return ranks


def _layout(options: dict[str, Any]) -> tuple[int, int] | None:
    """Copies and stages of each, where a trial is spread over several processes."""
    return (options["data_parallel"] or 1, options["pipeline"] or 1) if _ranks(options) > 1 else None


def _resources(options: dict[str, Any], gpus: float) -> Resources:
    from trainmark.study.sweep.cluster import Resources

    asked = options["gpus_per_trial"]
    cpus = options["cpus_per_trial"] or float(_threads(options) * _ranks(options))
    return Resources(cpus, gpus if asked is None else asked)


def _announcement(planned: Plan, at_once: int, resources: Resources) -> str:
    from trainmark.units import many

    left, done = len(planned.tasks), planned.trials - len(planned.tasks)
    workload = planned.tasks[0].first.course.workload.name
    text = f"{many(left, 'trial')}: {workload} on {planned.side.title}, {at_once} at a time, {resources} each."
    if done:
        text += f" {many(done, 'trial')} of this sweep had a record already."
    return f"{text} Ctrl-C keeps what is finished, --resume goes on."


def _show(group_id: str, store: Store, screen: Console, *, as_json: bool) -> int:
    """The sweep that was done, also what was done of it before."""
    from trainmark.analysis.sweep import sweeps
    from trainmark.report.sweep_table import sweep_table
    from trainmark.report.terminal import draw

    (found,) = sweeps(record for record in store.read_all() if record.group.id == group_id)
    if as_json:
        keys = ("workload", "grid", "trials", "best")
        print_json({key: getattr(found, key) for key in keys})
    else:
        draw(console(), sweep_table(found))
    again = f"trainmark report {shlex.quote(str(store.folder))} -o sweep.html"
    screen.print(f"\nRecords: {store.folder}. See them: {again}", soft_wrap=True, markup=False, highlight=False)
    return OK if all(trial.outcome == "ok" for trial in found.trials) else FAILED
