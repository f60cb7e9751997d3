"""``trainmark sweep``: which hyper-parameters are best?"""

from __future__ import annotations

import contextlib
import math
import shlex
from typing import TYPE_CHECKING, Any

import click

from trainmark.cli import options as shared
from trainmark.cli.complete import workload_or_file
from trainmark.cli.configuration.named_options import TrustedOption
from trainmark.cli.main import FAILED, OK
from trainmark.cli.output import json_option, show, terminal_observer
from trainmark.errors import NotInstalled
from trainmark.units import many

if TYPE_CHECKING:
    from trainmark.record.store import Store
    from trainmark.study.sweep.plan import SweepPlan
    from trainmark.study.sweep.tuning import Cluster
    from trainmark.terminal.observer import TerminalObserver

FOLDER = "sweep"
"""Name of the folder in ``--out`` that gets the records."""

EPILOG = """\b
Examples:
  trainmark sweep mnist-mlp128 --grid learning_rate=0.1,0.03,0.01 hidden=32,128
  trainmark sweep mnist-mlp512 --range learning_rate=0.001..1:log hidden=32..512 --epochs 9 --asha
  trainmark sweep mnist-cnn --grid learning_rate=0.1,0.01 --device cuda:0 --gpus-per-trial 0.5
  trainmark sweep mnist-cnn --grid seed=1,2 --data-parallel 2 --pipeline 2 --parallel 2    8 ranks
  trainmark sweep my.toml --grid 'model[1].units=64,128' --address ray://head:10001

\b
Keys: learning_rate, momentum, weight_decay, rho, beta1, beta2, epsilon, batch_size, epochs, steps,
dropout, hidden (the units of all dense layers but the last), seed; or the path of any value in the
workload's file.

\b
Exit codes: 0 every trial finished or was stopped by --asha; 1 a trial failed or diverged; 2 usage;
130 interrupted.
"""


class _SeveralWords(click.Command):
    """Lets several values follow one ``--grid`` or ``--range``, which click doesn't allow."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before each of its words."""
        written: list[str] = []
        option = ""
        for word in args:
            is_pair = "=" in word and not word.startswith("-")
            if option and is_pair and written[-1] != option:
                written.append(option)
            written.append(word)
            if word in ("--grid", "--range"):
                option = word
            elif not is_pair:
                option = ""
        return super().parse_args(ctx, written)


@click.command("sweep", cls=_SeveralWords, epilog=EPILOG)
@click.argument("workload", metavar="WORKLOAD", shell_complete=workload_or_file)
@click.option(
    "--grid",
    multiple=True,
    metavar="KEY=A,B...",
    help="Values to try; every combination is a trial.",
)
@click.option(
    "--range",
    "ranges",
    multiple=True,
    metavar="KEY=LOW..HIGH[:log]",
    help="Draw values at random; :log draws on a logarithmic scale.",
)
@shared.count_option(
    "--samples", "Draws from --range, for each combination of --grid.  [default: 10]"
)
@click.option(
    "--asha", is_flag=True, help="Stop bad trials early, by their test accuracy after each epoch."
)
@shared.count_option(
    "--parallel", "Maximum number of trials at a time.  [default: what fits on the cores or GPUs]"
)
@click.option(
    "--address",
    cls=TrustedOption,
    metavar="RAY",
    help="Ray cluster: auto, HOST:PORT or ray://HOST:PORT.  [default: none]",
)
@shared.number_option(
    "--cpus-per-trial",
    "Cores reserved for each trial.  [default: its threads times its ranks]",
    click.FloatRange(0, min_open=True),
)
@shared.number_option(
    "--gpus-per-trial",
    "GPUs reserved for each trial; fractions share one.  [default: 1 on a GPU]",
    click.FloatRange(0),
)
@shared.count_option("--retries", "Retries of a trial whose worker died.", default=1, least=0)
@shared.name_option(
    "--backend", "NAME@LABEL runs in --python LABEL.  [default: the best installed]"
)
@shared.name_option("--style", "A style of the backend.  [default: fast if the backend has it]")
@shared.name_option("--device", "cpu, cuda:0, ...  [default: an accelerator if available]")
@shared.count_option("--data-parallel", "Copies of a trial's network, one rank each.")
@shared.count_option("--pipeline", "Stages of each copy, one rank each.")
@shared.count_option("--epochs", "Epochs per trial; overrides the workload.")
@shared.count_option("--steps", "Steps per trial, instead of epochs.")
@shared.seed_option("Seed of every trial, and of --range.")
@shared.precision_option
@shared.size_option
@shared.count_option("--threads", "CPU threads of a trial.  [default: --cpus-per-trial, or 1]")
@shared.python_option
@shared.dataset_option
@shared.timeout_option
@shared.resume_option
@shared.data_dir_option
@shared.out_option(f"Folder for the records, in its sub-folder {FOLDER}.")
@json_option
def command(**options: Any) -> int:
    """Train with many hyper-parameters, several trials at a time, and show which are best.

    Each trial is an ordinary run in its own process, with an ordinary record. Ray Tune schedules
    the trials: on this machine, or on the cluster at --address.
    """
    from trainmark.backends.base import is_numbered
    from trainmark.execute.parent.choose import GENERIC
    from trainmark.execute.parent.probe import probe
    from trainmark.record.store import Store
    from trainmark.study.sweep import plan
    from trainmark.study.sweep.private import keep_private

    if options["address"] is None:
        keep_private()
    try:
        from trainmark.study.sweep import tuning
    except ModuleNotFoundError as error:
        raise NotInstalled(
            "sweep needs Ray Tune", found=str(error), fix="pip install 'trainmark[ray]'"
        ) from error

    layout = options["data_parallel"] or 1, options["pipeline"] or 1
    ranks = layout[0] * layout[1]
    # This is never the framework's default, which would give every trial all cores.
    threads = options["threads"] or max(1, math.floor((options["cpus_per_trial"] or 1) / ranks))

    def resources(device: str) -> tuning.Resources:
        gpus = float(ranks) if is_numbered(device) or device in GENERIC else 0.0
        asked = options["gpus_per_trial"]
        return tuning.Resources(
            options["cpus_per_trial"] or float(threads * ranks), gpus if asked is None else asked
        )

    request = shared.request_of({**options, "threads": threads})
    points = plan.read(
        request, options["grid"], options["ranges"], options["samples"], asha=options["asha"]
    )
    progress = terminal_observer()
    store = Store(options["out"] / FOLDER)
    with contextlib.ExitStack() as stack:
        cluster: Cluster | None = None
        if options["address"]:  # the backend is probed on a node
            cluster = stack.enter_context(
                tuning.at(options["address"], resources(options["device"] or ""))
            )
        with progress.preparing() as preparation:
            ask = cluster.ask if cluster else probe
            planned = plan.prepare(request, points, preparation, ask, layout if ranks > 1 else None)
        needs = resources(planned.side.device)
        plan.require_own_gpu(planned.side.device, needs.gpus, ranks)
        if cluster:
            cluster.reserve(needs)
        stack.enter_context(store.locked())
        if options["resume"]:
            planned = plan.without_done(planned, store.read_all())
        if planned.tasks:
            if cluster is None:
                cluster = stack.enter_context(
                    tuning.local(needs, options["parallel"], planned.accelerators)
                )
            _train(planned, cluster, store, progress, options)
    return _show(planned.group_id, store, progress, as_json=options["as_json"])


def _train(
    planned: SweepPlan,
    cluster: Cluster,
    store: Store,
    progress: TerminalObserver,
    options: dict[str, Any],
) -> None:
    from trainmark.measure.host import usable_core_numbers
    from trainmark.study.sweep.collect import collect
    from trainmark.terminal.trials import TrialProgress

    at_once = min(options["parallel"] or cluster.slots, cluster.slots, len(planned.tasks))
    planned = planned.side_by_side(at_once > 1)
    done = planned.trials - len(planned.tasks)
    cores = len(usable_core_numbers())
    text = (
        f"{many(len(planned.tasks), 'trial')}: {planned.title}, {at_once} at a time, "
        f"{cluster.resources} each. "
    )
    if done:
        text += f"{many(done, 'trial')} already recorded. "
    if options["address"] is None and at_once * cluster.resources.cpus > cores:
        text += f"This machine has only {many(cores, 'core')}, so trials compete for them. "
    text += "Ctrl-C keeps finished trials; --resume continues"
    with TrialProgress(progress.screen, text, store.folder, planned.trials, done) as lines:
        news = cluster.train(
            planned, at_once=at_once, retries=options["retries"], asha=options["asha"]
        )
        collect(news, planned, store, lines.recorded, lines.lost)


def _show(group_id: str, store: Store, progress: TerminalObserver, *, as_json: bool) -> int:
    """Show the whole sweep, trials of earlier attempts included."""
    from trainmark.analysis.sweep import sweeps
    from trainmark.report.sweep_table import sweep_table

    (found,) = sweeps(record for record in store.read_all() if record.group.id == group_id)
    data = {key: getattr(found, key) for key in ("workload", "grid", "trials", "best")}
    show(data, [sweep_table(found)], as_json=as_json)
    next_command = f"trainmark report {shlex.quote(str(store.folder))} -o sweep.html"
    progress.message(f"\nRecords: {store.folder}. To see them: {next_command}")
    return OK if all(trial.outcome == "ok" for trial in found.trials) else FAILED
