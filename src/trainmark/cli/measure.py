"""``trainmark measure``: any command in interleaved rounds, with each device and varied value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from trainmark.cli import options as shared
from trainmark.cli.configuration.named_options import TrustedOption
from trainmark.cli.output import terminal_observer
from trainmark.errors import UsageError

EPILOG = """\b
Examples:
  trainmark measure --device cpu,cuda:0 -- python train.py --device {device}
  trainmark measure --vary workers=0,4 -- python train.py --workers {workers} --seed {seed}
  trainmark measure --vary version=main,head --repeats 7 -- python {version}/train.py
  trainmark measure --vary-env OMP_NUM_THREADS=1,2 --budget 60 -- python train.py
  trainmark measure --vary lr=0.1,0.01 --metric val_loss --lower-is-better -- python train.py {lr}
  trainmark measure --steps 200 -- torchrun --nproc-per-node 2 train.py
  trainmark measure -- ./train-in-c 10

\b
Placeholders in braces are filled in, and every combination is one side of the comparison. {seed} is
--seed in the first round and increases by one per round. {{ and }} are literal braces.
The steps of PyTorch, Keras and JAX scripts are observed. Other scripts report epochs with
`from trainmark import hook` and `hook.epoch(loss=..., accuracy=..., examples=...)`; other languages
use a protocol (docs/protocol.md).

\b
Exit codes: 0 done; 1 a run failed or diverged; 2 usage; 130 interrupted.
"""


@click.command("measure", epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@click.argument("words", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@shared.names_option("--device", "Values of {device}: cpu, cuda:0, ...", "a,b", TrustedOption)
@click.option(
    "--vary",
    cls=TrustedOption,
    multiple=True,
    metavar="NAME=a,b",
    help="Values of {NAME}, separated by commas.",
)
@click.option(
    "--vary-env",
    cls=TrustedOption,
    multiple=True,
    metavar="NAME=a,b",
    help="Values of the environment variable NAME.",
)
@click.option(
    "--inject/--no-inject", default=True, help="Observe the steps of Python scripts.  [default: on]"
)
@click.option(
    "--steps", type=click.IntRange(1), metavar="N", help="Stop training after N observed steps."
)
@click.option(
    "--in-place",
    cls=TrustedOption,
    is_flag=True,
    help="Run in the working folder, instead of copies of it.  [default: only for a single run]",
)
@click.option(
    "--metric",
    metavar="NAME",
    help="A figure that the command prints (val_loss: 0.31) or logs to TensorBoard, MLflow, "
    "wandb, ...: compare what the sides learn by its last value.",
)
@click.option("--lower-is-better", is_flag=True, help="Which values of --metric are better.")
@click.option("--higher-is-better", is_flag=True, help="Which values of --metric are better.")
@shared.copy_limit_option
@shared.repeats_option()
@shared.budget_option(0.0)
@shared.margin_option
@click.option("--name", metavar="NAME", help="Name of the training.  [default: the script's]")
@shared.seed_option("Seed of the first round.")
@shared.price_option
@shared.label_option
@shared.timeout_option
@shared.resume_option
@click.option(
    "--ignore-failure", is_flag=True, help="Run all rounds, even if a run in the first one fails."
)
@shared.results_options
def command(words: tuple[str, ...], **options: Any) -> int:
    """Run any command in interleaved rounds, record each run, and compare them.

    The command runs unchanged, without showing its output. Several runs, or those with a budget,
    happen in copies of the working folder, and the files that the first complete run wrote are
    kept. trainmark measures its time, exit code,
    CPU and GPU utilisation, memory and energy. In Python scripts that train with PyTorch, Keras or
    JAX, it also observes steps, losses and epochs. With --budget, it ends them once their speed is
    measured.
    """
    from trainmark.cli.run import show_records
    from trainmark.execute.parent import command as commands
    from trainmark.execute.parent.command import GIB
    from trainmark.execute.parent.plan import Settings
    from trainmark.record.store import Store
    from trainmark.study.options import read_metric, read_prices, working_folder
    from trainmark.study.run import in_copies, measure

    store = Store(options["out"])
    name = options["name"] or commands.name_of(words)
    measured = commands.Command(
        name, words, working_folder(), inject=options["inject"], most_steps=options["steps"]
    )
    metric = read_metric(
        options["metric"], lower=options["lower_is_better"], higher=options["higher_is_better"]
    )
    most_copied = int(options["copy_limit"] * GIB)
    measured = replace(measured, most_copied=most_copied, metric=metric)
    prices = read_prices(options["prices"])
    typed = shared.masked_command_line()
    settings = Settings(
        seed=options["seed"], timeout=options["timeout"], prices=prices, command=typed
    )
    varied = _varied(options["vary"])
    environment = _varied(options["vary_env"], "--vary-env")
    sides = commands.sides(measured, options["device"], varied, environment)
    is_single = len(sides) * options["repeats"] == 1 and not options["budget"]
    if not (options["in_place"] or is_single):
        measured = in_copies(measured, store)
    progress = terminal_observer(quiet=options["quiet"])
    rounds = shared.round_options(options)
    found = measure(measured, sides, options["repeats"], settings, store, progress, rounds)
    return show_records(found, store, options)


def _varied(texts: tuple[str, ...], option: str = "--vary") -> dict[str, tuple[str, ...]]:
    """Parse the values of --vary or --vary-env; raises :class:`~trainmark.errors.UsageError`."""
    varied: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        every = tuple(dict.fromkeys(value.strip() for value in values.split(",")))
        if not (name.isidentifier() and values) or name == "device" or name in varied:
            more = "a value may be empty, as in NAME=,--flag; give devices with --device"
            example = more if option == "--vary" else "such as OMP_NUM_THREADS=1,2"
            raise UsageError(
                f"{option} {text!r} can't be read", expected=f"NAME=a,b, each NAME once; {example}"
            )
        varied[name] = every
    return varied
