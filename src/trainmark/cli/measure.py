"""``trainmark measure``: any command in interleaved rounds, on each device and with each varied value."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from trainmark.cli import options as shared
from trainmark.cli.main import FAILED, OK
from trainmark.cli.output import console, json_option, made_before
from trainmark.cli.request import typed
from trainmark.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from trainmark.execute.parent.command import Command, CommandRun
    from trainmark.execute.parent.here import Here
    from trainmark.execute.parent.task import Task
    from trainmark.record.record import Record
    from trainmark.record.store import Store

EPILOG = """\b
Examples:
  trainmark measure --device cpu,cuda:0 -- python train.py --device {device}
  trainmark measure --vary workers=0,4 -- python train.py --workers {workers} --seed {seed}
  trainmark measure --vary version=main,head --repeats 7 -- python {version}/train.py
  trainmark measure -- ./train-in-c 10

\b
Names in braces are filled in, and every combination is one side of the comparison. {seed} is --seed in the first
round, and grows by one per round. {{ and }} are literal braces.
With `from trainmark import hook` and `hook.epoch(loss=..., accuracy=..., examples=...)` a script reports its epochs;
other languages use a protocol (docs/protocol.md).

\b
Exit codes: 0 done; 1 a run failed or diverged; 2 usage; 130 interrupted.
"""


@click.command("measure", epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@click.argument("words", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@shared.names_option("--device", "Values of {device}: cpu, cuda:0, ...", "a,b")
@click.option("--vary", multiple=True, metavar="NAME=a,b", help="Values of {NAME}, separated by commas.")
@shared.repeats_option()
@shared.until_stable_option
@click.option("--name", metavar="NAME", help="Name of the training.  [default: the script's]")
@shared.seed_option("Seed of the first round.")
@shared.price_option
@shared.label_option
@shared.timeout_option
@shared.resume_option
@shared.out_option()
@json_option
def command(words: tuple[str, ...], **options: Any) -> int:
    """Run any command in interleaved rounds, record each run, and compare them.

    The command runs unchanged: trainmark measures its time, exit status, cores, GPUs, memory and energy. With three
    more lines in a script, its epochs are recorded, too.
    """
    from trainmark.cli.run import show_records
    from trainmark.execute.parent import command as commands
    from trainmark.execute.parent.here import look_around
    from trainmark.execute.parent.plan import Settings
    from trainmark.execute.parent.task import command_in_rounds, remaining
    from trainmark.record.store import Store

    if options["until_stable"] is not None and options["resume"]:
        raise UsageError("--until-stable can't be combined with --resume", fix="Leave one of them out.")
    store, screen = Store(options["out"]), console(to_stderr=True)
    measured = commands.Command(options["name"] or commands.name_of(words), words, shared.working_folder())
    settings = Settings(
        seed=options["seed"],
        timeout=options["timeout"],
        prices=shared.read_prices(options["prices"]),
        command=typed(),
    )
    sides = commands.sides(measured, options["device"], _varied(options["vary"]))
    with store.locked():
        earlier = made_before(store) if options["resume"] else []
        tasks = command_in_rounds(measured, sides, options["repeats"], settings)
        left = remaining(tasks, earlier)
        if left:
            screen.print(_plan(measured, left, len(tasks) - len(left)), soft_wrap=True, markup=False, highlight=False)
        here = partial(look_around, options["labels"])
        records = _carry_out(left, store, screen, options["until_stable"], here) if left else []
    show_records(records, earlier, store, as_json=options["as_json"])
    return FAILED if any(record.outcome.status != "ok" for record in records) else OK


def _carry_out(
    tasks: list[Task[CommandRun]], store: Store, screen: Console, until_stable: float | None, here: Callable[[], Here]
) -> list[Record]:
    from trainmark.cli.progress import RunProgress
    from trainmark.execute.parent.scheduler import execute
    from trainmark.measure.sampler import Sampler
    from trainmark.study.stable import rounds_until_stable

    sampler = Sampler()

    def once(these: list[Task[CommandRun]]) -> list[Record]:
        with RunProgress(screen, these, store.folder) as progress:
            return execute(these, {}, store, progress, here, sampler)

    if until_stable is None:
        return once(tasks)
    told = partial(screen.print, soft_wrap=True, markup=False, highlight=False)
    return rounds_until_stable(tasks, once, until_stable, told=told)


def _varied(texts: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """What was given with --vary; raises :class:`~trainmark.errors.UsageError`."""
    varied: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        every = tuple(dict.fromkeys(value.strip() for value in values.split(",")))
        if not (name.isidentifier() and sign and all(every)) or name == "device" or name in varied:
            raise UsageError(
                f"--vary {text!r} can't be read",
                expected="NAME=a,b with the values of {NAME}, each name once; give devices with --device",
            )
        varied[name] = every
    return varied


def _plan(measured: Command, tasks: list[Task[CommandRun]], resumed: int) -> str:
    """The plan, in a sentence or two."""
    from trainmark.cli.run import what_is_kept
    from trainmark.units import many

    sides = list(dict.fromkeys(task.first.side.title if task.first.side.values else "as it is" for task in tasks))
    rounds = 1 + max(task.round for task in tasks)
    text = f"{many(len(tasks), 'run')}: {measured.name}, {'; '.join(sides)}, {many(rounds, 'round')}."
    return text + what_is_kept(resumed)
