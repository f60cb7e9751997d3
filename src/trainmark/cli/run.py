"""``trainmark run``: train, record each run, and compare."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from trainmark.cli import options as shared
from trainmark.cli.complete import workload_or_file
from trainmark.cli.main import FAILED, OK
from trainmark.cli.output import export, print_json, print_message, terminal_observer
from trainmark.cli.streams import losing_output
from trainmark.report.console import console, draw_all
from trainmark.units import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainmark.analysis.results import Comparison, GroupResult
    from trainmark.record.record import Record
    from trainmark.record.store import Store
    from trainmark.study.run import Measured

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
@shared.backends_option
@shared.names_option(
    "--style",
    "idiomatic (the framework's tutorial loop), compiled (the same loop through its compiler; "
    "PyTorch's may take a minute or more to start), fast (the fastest loop of its public API); "
    "examples/recipes has each as a short script.  [default: idiomatic,fast]",
    "a,b",
)
@shared.names_option("--device", "cpu, cuda:0, ...  [default: all that the backend sees]", "a,b")
@shared.repeats_option(
    "Full training runs per side, which show whether it learns.  [default: 3; 1 with --published]",
    default=None,
)
@shared.budget_option()
@shared.margin_option
@shared.count_option("--epochs", "Epochs per run; overrides the workload.")
@shared.count_option("--steps", "Steps per run, instead of epochs.")
@click.option(
    "--until",
    metavar="TARGET",
    help="Stop after the first epoch that reaches, say, 'test_accuracy>=0.98', or after --epochs "
    "[default: 100].",
)
@shared.seed_option("Seed of the first round.")
@click.option("--published", is_flag=True, help="Run exactly the published protocol.")
@click.option(
    "--protocol",
    type=click.Choice(["fresh", "continued"]),
    help="fresh: new weights in each repeat; continued: the previous repeat's weights, in one "
    "process.",
)
@shared.precision_option
@shared.size_option
@shared.threads_option
@shared.number_option(
    "--memory-fraction",
    "Largest fraction of the GPU's memory to use, 0 to 1.",
    click.FloatRange(0, 1, min_open=True),
    metavar="F",
)
@shared.python_option
@shared.dataset_option
@shared.count_option("--dataset-repeats", "Passes over the dataset per epoch.")
@click.option(
    "--weights-from", type=shared.PATH, metavar="RECORD", help="Start from a record's weights."
)
@click.option("--save-weights", is_flag=True, help="Save each run's weights next to its record.")
@shared.number_option(
    "--log-every", "Print step, loss and samples/s every N steps.", click.IntRange(1), metavar="N"
)
@shared.price_option
@shared.label_option
@shared.timeout_option
@shared.resume_option
@shared.data_dir_option
@shared.results_options
def command(**options: Any) -> int:
    """Train workloads on backends and devices, record each run, and compare them.

    WORKLOAD is a name (see `trainmark list workloads`) or a TOML file. Without one, mnist-mlp512 is
    trained with the best installed backend, in the styles idiomatic and fast, on every device. The
    sides are interleaved in slices of a tenth of a second, and rounds continue until the verdict is
    decided or the --budget is used up.
    """
    from trainmark.record.store import Store
    from trainmark.study.run import run

    store = Store(options["out"])
    request = shared.request_of(options)
    progress = terminal_observer(quiet=options["quiet"])
    found = run(request, store, progress, shared.round_options(options))
    return show_records(found, store, options)


def show_records(found: Measured, store: Store, options: dict[str, Any]) -> int:
    """Show what was measured, as :func:`_show` does.

    Returns:
        The exit code.

    Raises:
        KeyboardInterrupt: after that, if Ctrl-C has ended the study.
    """
    if found.interrupted and not found.records:
        raise KeyboardInterrupt
    code = FAILED
    with losing_output(is_allowed=found.interrupted):
        code = _show(found.records, found.earlier, store, options)
    if found.interrupted:
        raise KeyboardInterrupt
    return code


def _show(
    records: list[Record], earlier: list[Record], store: Store, options: dict[str, Any]
) -> int:
    """Print the new records as JSON, or compare them with the earlier ones of the same plan.

    Returns:
        The exit code.
    """
    from trainmark.analysis.comparison import compare
    from trainmark.report.tables import tables_of
    from trainmark.study.run import has_failed

    code = FAILED if any(map(has_failed, records)) else OK
    if options["dry_run"]:
        return code
    groups = {record.group.id for record in records}
    shown = [record for record in earlier if record.group.id in groups] + records
    comparison = compare(shown, margin=options["margin"] / 100) if shown else None
    if comparison is not None:
        export(comparison, options)
    of_metric = [] if comparison is None else list(_of_metric(comparison))
    for group, sentence in of_metric:
        if group.metric is not None and group.metric.lacking:
            print_message(sentence)
    if options["as_json"]:
        print_json(records)
        return code
    screen = console()
    for sentence in _of_growth(records, store):
        screen.print(sentence, soft_wrap=True, markup=False)
    if comparison is not None and any(record.outcome.status == "ok" for record in shown):
        draw_all(screen, tables_of(comparison), legend=options["legend"])
    for group, sentence in of_metric:
        if group.metric is not None and not group.metric.lacking:
            screen.print(sentence, soft_wrap=True, markup=False)
    if options["quiet"]:
        return code
    is_alone = comparison is not None and len(comparison.groups) == 1
    for sentence in _what_next(records, store, is_alone=is_alone):
        screen.print(sentence, soft_wrap=True, markup=False)
    return code


def _what_next(records: list[Record], store: Store, *, is_alone: bool) -> Iterator[str]:
    """Yield what was seen of the steps of a single command, and which command to call next."""
    is_command = bool(records) and records[-1].process is not None
    if is_command and is_alone:
        yield from _of_steps(records)
    news = "Nothing to do: every run already has a record"
    if records:
        in_all = len(list(store.folder.glob("*.json")))
        news = f"{many(len(records), 'new record')}, {in_all:,} in all"
    folder = shlex.quote(str(store.folder))
    next_command = "trainmark compare"
    if store.folder != shared.DEFAULT_OUT:
        next_command += f" {folder}"
    if is_command and not is_alone:
        next_command += f"; to explain one: trainmark explain {folder}/{records[-1].id}.json"
    yield f"\n{news}, in {store.folder}. To compare them: {next_command}"


def _of_metric(comparison: Comparison) -> Iterator[tuple[GroupResult, str]]:
    """Yield a sentence about the figure that --metric names, for each side."""
    from trainmark.report.labels import labels
    from trainmark.report.metric_words import final_sentence

    names = labels([group.key for group in comparison.groups])
    for name, group in zip(names, comparison.groups, strict=True):
        if group.metric is not None:
            yield group, final_sentence(group.metric, name if len(names) > 1 else "")


def _of_growth(records: list[Record], store: Store) -> Iterator[str]:
    """Yield by how much the steps and the memory of each side grow, named if there are several."""
    from trainmark.analysis.whole_run import steps_of_whole_run
    from trainmark.record.growth import is_growing
    from trainmark.report.growth import growth_sentences
    from trainmark.report.labels import side_of

    longest = _longest_of_sides(records)
    for record in longest:
        if record.observed is None or not is_growing(record.observed):
            continue
        # Reading all records takes long, and only a growth asks for the last step.
        last = None
        if record.observed.ended_early:
            last = steps_of_whole_run(record, store.read_all())
        for sentence in growth_sentences(record.observed, last):
            yield sentence if len(longest) == 1 else f"{side_of(record)}: {sentence}"


def _longest_of_sides(records: list[Record]) -> list[Record]:
    """Return the record of each side in which the most steps of a user's training were seen."""
    from trainmark.record.facts import RunKey

    longest: dict[RunKey, Record] = {}
    most: dict[RunKey, int] = {}
    for record in records:
        if record.observed is None or record.outcome.status != "ok":
            continue
        side = RunKey.of(record).of_side
        if record.observed.steps > most.get(side, -1):
            most[side] = record.observed.steps
            longest[side] = record
    return list(longest.values())


def _of_steps(records: list[Record]) -> Iterator[str]:
    """Yield what was seen of the steps of a single command, and what to try next."""
    from trainmark.masking import MASK
    from trainmark.report.own_steps import own_steps

    for record in _longest_of_sides(records):
        if record.observed is None or record.process is None:
            continue
        yield from own_steps(record.observed)
        words = shlex.join(record.process.argv)
        if MASK not in words:
            yield f"What would make it faster: trainmark explain -- {words}"
