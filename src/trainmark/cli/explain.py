"""``trainmark explain``: why is training slow, and what can you do about it?"""

from __future__ import annotations

import dataclasses
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from trainmark import regular
from trainmark.cli import options as shared
from trainmark.cli.complete import workload_or_file
from trainmark.cli.main import FAILED, OK
from trainmark.cli.output import (
    file_option,
    json_option,
    print_message,
    show,
    terminal_observer,
    terminal_picture,
    write_file,
)
from trainmark.cli.show import refuse_others
from trainmark.cli.streams import losing_output
from trainmark.errors import ExplanationFailed, NotInstalled, UsageError
from trainmark.record.caveats import Caveat
from trainmark.units import many

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainmark.execute.parent.request import PreparationObserver, RunRequest
    from trainmark.record.record import Record
    from trainmark.report.table import Table
    from trainmark.study.chosen import ChosenSide
    from trainmark.study.explain import Explanation
    from trainmark.study.explain.measure import ExplainedSide
    from trainmark.terminal.observer import TerminalObserver

EPILOG = """\b
Examples:
  trainmark explain mnist-mlp128 --backend torch      the tutorial's loop, on the best device
  trainmark explain mnist-cnn --backend jax --style fast --device cpu
  trainmark explain trainmark-results/RECORD.json     a recorded run; why it diverged, if it did
  trainmark explain A.json B.json                     why two runs took different times
  trainmark explain -- python train.py --epochs 10    what makes your own script faster

\b
A WORKLOAD or RECORD is trained in short, interleaved stretches, complete and with one component of
the step removed at a time. The time saved is that component's share; the rest is reported as
unexplained.

\b
Exit codes: 0 done; 1 a process failed, or no explanation was found; 2 usage; 130 interrupted.
"""


class BeforeCommand(click.Command):
    """Takes the words after ``--`` as a command, not as a workload."""

    KEY = "trainmark.command"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what follows ``--``, and parse the rest."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[self.KEY] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


@click.command("explain", epilog=EPILOG, cls=BeforeCommand)
@click.argument(
    "target",
    metavar="WORKLOAD|RECORD|-- COMMAND...",
    required=False,
    shell_complete=workload_or_file,
)
@click.argument("other", metavar="[RECORD]", required=False, shell_complete=workload_or_file)
@shared.names_option(
    "--backend",
    "One backend; NAME@LABEL runs in --python LABEL.  [default: the best installed]",
    "a",
)
@shared.names_option("--style", "idiomatic, compiled or fast.  [default: idiomatic]", "a")
@shared.names_option("--device", "cpu, cuda:0, ...  [default: an accelerator if available]", "a")
@shared.seed_option("Seed of the weights.")
@shared.number_option(
    "--seconds",
    "Measurement budget; a larger one narrows the intervals. For a COMMAND, the limit of the whole "
    "command, 120 by default.",
    click.FloatRange(1),
    default=100,
    metavar="S",
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="With a COMMAND: try only this, such as bf16; repeatable.",
)
@shared.copy_limit_option
@file_option("--chart", "With a COMMAND: chart of the speed-ups (.svg or .png).")
@file_option("--patch", "With a COMMAND: write the changes that win as a patch (.diff or .patch).")
@file_option("--export-svg", "Write the explanation as a picture of the terminal (SVG).")
@shared.size_option
@shared.conditions_options
@shared.data_dir_option
@json_option
def command(target: str | None, other: str | None, **options: Any) -> int:
    """Explain where the time of a training step goes and how to speed it up, or why a run did not
    learn.

    A RECORD is explained with the options it was run with. If it diverged or did not learn, it is
    trained again up to the step where it went wrong. Given two records, explains the difference.

    Given a COMMAND that runs a PyTorch, Keras or JAX script, tries changes without editing the
    script, each in a separate process, and compares speed and losses.
    """
    from trainmark.study import explain

    words = click.get_current_context().meta.get(BeforeCommand.KEY)
    if words:
        return _explain_command(words, target, options)
    _refuse(("only", "chart", "patch"), "these options need a COMMAND")
    if target is None:
        raise UsageError(
            "nothing to explain", expected="a WORKLOAD, a RECORD, or -- and a COMMAND", found=""
        )
    refuse_others(target)
    if other is not None:
        _refuse(_OF_MEASURING, "two records are explained without running anything")
        return _set_against(_existing(target), _existing(other), options)

    progress = terminal_observer()
    request = shared.request_of(options)
    is_file = regular.is_file(Path(target))
    if target.endswith(".json") or (is_file and not target.endswith(".toml")):
        _refuse(
            _OF_A_RUN,
            "a record is explained with the options of its run",
            "Explain the workload instead.",
        )
        return _explain_record(_existing(target), request, progress, options)
    with progress.preparing() as preparation:
        subject = explain.prepare(dataclasses.replace(request, workloads=(target,)), preparation)
    return _take_apart(subject, (), progress, options)


def _explain_command(words: list[str], target: str | None, options: dict[str, Any]) -> int:
    """Try changes to a user's script."""
    from trainmark.execute.parent import command as commands
    from trainmark.execute.parent.plan import Settings
    from trainmark.report.changes_table import changes_table, shares
    from trainmark.report.charts.gains import gains
    from trainmark.report.files import in_format_of, require_drawable
    from trainmark.report.gpu_time import gpu_time
    from trainmark.report.jax_steps import jax_steps
    from trainmark.report.script_answer import answers
    from trainmark.study.explain import own_script
    from trainmark.study.options import working_folder

    if target is not None:
        raise UsageError(
            "a COMMAND takes no WORKLOAD or RECORD", expected="nothing before --", found=target
        )
    _refuse(
        ("backend", "style", "device", "dataset", "size", "precision", "pythons", "data_dir"),
        "these options don't apply to a COMMAND",
    )
    if options["chart"]:
        require_drawable(options["chart"])
    own_script.require_changes(options["only"])
    if options["patch"]:
        _require_patchable(options["patch"])
    measured = commands.Command(
        commands.name_of(words),
        tuple(words),
        working_folder(),
        scratch=True,
        most_copied=int(options["copy_limit"] * commands.GIB),
    )
    commands.sides(measured, (), {})  # there are no values for placeholders
    commands.require_program(words[0], measured.directory)
    commands.require_small(measured)
    seconds = options["seconds"]
    source = click.get_current_context().get_parameter_source("seconds")
    if source is ParameterSource.DEFAULT:
        seconds = own_script.SECONDS
    settings = Settings(
        seed=options["seed"], timeout=options["timeout"], threads=options["threads"]
    )
    began = shared.began()
    limit = own_script.time_limit(seconds, time.perf_counter() if began is None else began)
    title = f"{measured.name}: trying changes for up to {seconds:g} s, in copies of this folder"
    with terminal_observer().working(title, limit) as on_progress:
        found = own_script.explain(
            measured,
            settings,
            on_progress,
            seconds,
            options["only"],
            limit=limit,
            patches=options["patch"] is not None,
        )
    observed = dataclasses.replace(found.observed, losses=[], changed={})
    is_jax = observed.framework == "jax"
    sentences_shown = answers(
        found.findings,
        found.stack,
        found.lines,
        found.left_out,
        causes=found.causes,
        inside=found.inside,
        texts=found.texts,
        grows=found.grows,
        grows_at=found.grows_at,
        memory_grows=found.memory_grows,
        planned_steps=found.observed.planned_steps,
        learning_unseen=found.observed.unknown.get("learning"),
        interrupted=found.interrupted,
        is_queued=is_jax or observed.on_gpu,
        is_busy=found.is_busy,
        seen=jax_steps(observed) if is_jax else gpu_time(found.gpu_modules),
        samples=found.samples,
        workers=found.workers,
    )
    parts = dict(found.parts or shares(observed))
    data = {**vars(found), "observed": observed, "shares": parts, "sentences": sentences_shown}
    data.pop("parts")
    shown = parts if found.gpu_busy is None else {**parts, "GPU busy": found.gpu_busy}
    place = f"{observed.framework} on {observed.device}"
    table = changes_table(
        measured.name,
        place,
        found.step_seconds,
        shown,
        found.findings,
        found.left_out,
        sentences_shown,
    )
    with losing_output(is_allowed=found.interrupted):
        _show(data, [table], options)
    if options["chart"]:
        write_file(options["chart"], in_format_of(options["chart"], [gains(found.findings)]))
        print_message(f"wrote {options['chart']}")
    if options["patch"]:
        _write_patch(options["patch"], found.patch, found.unwritten)
    if found.interrupted:
        raise KeyboardInterrupt
    return OK


def _require_patchable(file: Path) -> None:
    """Check that a patch can be written to this file.

    Raises:
        UsageError: it has another suffix, so it might be the script, named by mistake.
        NotInstalled: LibCST is missing.
    """
    if file.suffix not in _PATCHES:
        raise UsageError(
            "--patch writes only to .patch and .diff files, so that it can't overwrite a script",
            expected=f"a name that ends with {' or '.join(_PATCHES)}",
            found=str(file),
        )
    if find_spec("libcst") is None:
        raise NotInstalled(
            "a patch can't be written",
            expected="LibCST",
            found="it is not installed",
            fix="pip install 'trainmark[patch]'",
        )


def _write_patch(file: Path, patch: str, unwritten: Sequence[str]) -> None:
    """Write a patch, or say why there is none, and what is not in it."""
    if unwritten:
        names = ", ".join(unwritten)
        print_message(f"not in the patch, since it could not be written into the source: {names}")
    if not patch:
        print_message(
            f"no patch was written to {file}: none of the changes that trainmark can write into "
            "the source was clearly faster"
        )
        return
    write_file(file, patch.encode())
    print_message(f"wrote {file}; to apply it: git apply {file}, or patch -p1 < {file}")


_PATCHES = (".patch", ".diff")
_OF_A_RUN = ("backend", "style", "device", "seed", "precision", "threads", "dataset", "size")
_OF_MEASURING = (*_OF_A_RUN, "seconds", "pythons", "timeout", "data_dir")


def _show(data: Any, tables: list[Table], options: Mapping[str, Any]) -> None:
    """Print an explanation, and write it as a picture if asked for."""
    show(data, tables, as_json=options["as_json"])
    file = options["export_svg"]
    if file is not None:
        write_file(file, terminal_picture(tables).encode())
        print_message(f"wrote {file}")


def _refuse(names: tuple[str, ...], because: str, fix: str = "") -> None:
    """Raise :class:`~trainmark.errors.UsageError` if one of these options was given."""
    context = click.get_current_context()
    flags = {each.name: each.opts[0] for each in context.command.params}
    given = [
        flags[name]
        for name in names
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise UsageError(because, expected="none of these options", found=", ".join(given), fix=fix)


def _existing(name: str) -> Path:
    """Return the file of a record."""
    if not regular.is_file(Path(name)):
        raise UsageError(
            f"no record at {name}",
            expected="a record's file, or a single WORKLOAD",
            found=regular.found_at(Path(name)),
            fix="`trainmark compare FOLDER` shows the records in a folder.",
        )
    return Path(name)


def _explain_record(
    path: Path, request: RunRequest, progress: TerminalObserver, options: dict[str, Any]
) -> int:
    """Explain why a record's run failed or is slow, or only what the record contains."""
    from trainmark.record.store import read
    from trainmark.study import rerun
    from trainmark.study.explain.measure import ExplainedSide

    record = read(path)
    if record.process is not None:
        return _explain_from_outside(record, options)
    with progress.preparing() as preparation:
        chosen = _choose_again(record, request, preparation)
    if isinstance(chosen, str):
        return _explain_record_only(record, chosen, progress, options)
    unlike = rerun.unlike(record, chosen)
    if isinstance(chosen, ExplainedSide):
        return _take_apart(chosen, unlike, progress, options)
    elsewhere = rerun.elsewhere(record)
    if elsewhere:
        unlike = (f"{elsewhere}; it was trained again here", *unlike)
    return _diagnose(record, chosen, unlike, progress, options)


def _choose_again(
    record: Record, request: RunRequest, preparation: PreparationObserver
) -> ChosenSide | str:
    """Return the side that runs a record again, or why there is none.

    It is an ``ExplainedSide``, unless the run failed.
    """
    from trainmark.errors import (
        AbsentDevice,
        DataUnavailable,
        ForeignRecord,
        NotInstalled,
        UnknownName,
        Unsupported,
    )
    from trainmark.study import explain, rerun
    from trainmark.study.chosen import choose
    from trainmark.study.explain import failure

    try:
        rerun_request = rerun.request_of(record, request)
        if failure.needs_diagnosis(record):
            return choose(rerun_request, preparation)
        return rerun.elsewhere(record) or explain.prepare(rerun_request, preparation)
    except (
        AbsentDevice,
        DataUnavailable,
        ForeignRecord,
        NotInstalled,
        UnknownName,
        Unsupported,
    ) as error:
        return str(error)


def _set_against(a: Path, b: Path, options: Mapping[str, Any]) -> int:
    from trainmark.analysis.two_records import set_against
    from trainmark.record.store import read
    from trainmark.report.two_records_table import two_records_table

    first = read(a)
    second = read(b)
    found = set_against(first, second)
    data = {"a": first.id, "b": second.id, **dataclasses.asdict(found)}
    _show(data, [two_records_table(first.id, second.id, found)], options)
    return OK


def _take_apart(
    subject: ExplainedSide,
    unlike: tuple[str, ...],
    progress: TerminalObserver,
    options: dict[str, Any],
) -> int:
    from trainmark.study import explain

    training = f"{subject.scheduled.workload.name}, {subject.side.title}"
    duration = f"{options['seconds']:g} s of measurement, plus start-up"
    with progress.working(f"{training}: {duration}") as on_progress:
        found = explain.explain(subject, on_progress, options["seconds"])
    _show({**_data(found), "notes": unlike}, [_table(found, unlike)], options)
    return OK


def _diagnose(
    record: Record,
    chosen: ChosenSide,
    unlike: tuple[str, ...],
    progress: TerminalObserver,
    options: dict[str, Any],
) -> int:
    from trainmark.report.diagnosis_table import diagnosis_tables
    from trainmark.study.explain import failure

    title = f"{record.id}: training again up to the step where it went wrong"
    with progress.working(title) as on_progress:
        found = failure.diagnose_run(record, chosen, on_progress)
    notes = (*found.notes, *unlike)
    data = {"record": record.id, **vars(found), "notes": notes}
    tables = diagnosis_tables(record.id, found.diagnosis, found.replay, notes)
    _show(data, tables, options)
    return FAILED if found.replay.stopped and found.diagnosis.cause == "not-found" else OK


def _explain_from_outside(record: Record, options: dict[str, Any]) -> int:
    """Show what was observed of a command, whose steps can't be broken down."""
    from trainmark.analysis.outside import observe
    from trainmark.report.outside_table import outside_table

    found = observe(record)
    data: dict[str, Any] = {
        "record": record.id,
        "observations": found,
        "step_seconds": None,
        "shares": [],
        "unexplained": None,
        "advice": [],
        "crossover_batch": None,
    }
    _show(data, [outside_table(record.id, found)], options)
    return OK


def _explain_record_only(
    record: Record, why_not: str, progress: TerminalObserver, options: dict[str, Any]
) -> int:
    """Explain a record that can't be run again from its data alone."""
    from trainmark.analysis.attribution import from_record
    from trainmark.record.facts import facts_of
    from trainmark.report.explanation_table import explanation_table

    attribution = from_record(record)
    if attribution is None:
        raise ExplanationFailed(
            f"{record.id} has nothing to explain", expected="a finished epoch", found=why_not
        )
    if not options["as_json"]:
        progress.message(f"note: {why_not}; this explanation uses the record alone")
    data: dict[str, Any] = {
        "record": record.id,
        **facts_of(record, ("workload", "backend", "style", "device")),
        "not_measured_because": why_not,
        "step_seconds": attribution.step_seconds.value,
        "shares": attribution.shares,
        "unexplained": attribution.unexplained.value,
        "unknown": attribution.unknown,
        "advice": [],
        "crossover_batch": None,
    }
    table = explanation_table(record.id, (), attribution, rest="not measured")
    _show(data, [table], options)
    return OK


def _data(found: Explanation) -> dict[str, Any]:
    from trainmark.report.explanation_table import sentences

    subject = found.subject
    side = subject.side
    crossing = found.crossing
    return {
        "workload": subject.scheduled.workload.name,
        "backend": side.backend,
        "style": side.style,
        "device": side.device,
        "precision": side.precision,
        "threads": subject.settings.threads,
        "shares_measured_with_threads": subject.threads_of_shares,
        "batch": subject.batch,
        "step_seconds": found.attribution.step_seconds.value,
        "step_seconds_low": found.attribution.step_seconds.low,
        "step_seconds_high": found.attribution.step_seconds.high,
        "shares": found.attribution.shares,
        "unexplained": found.attribution.unexplained.value,
        "unexplained_low": found.attribution.unexplained.low,
        "unexplained_high": found.attribution.unexplained.high,
        "unknown": found.attribution.unknown,
        "advice": found.advice,
        "sentences": sentences(found.attribution, found.advice),
        "crossover_batch": crossing.batch if crossing else None,
        "crossover": crossing,
        "no_crossover_because": found.no_crossing,
        "caveats": [Caveat.BUSY_MACHINE] if subject.busy else [],
        "rounds": found.found.rounds,
        "rounds_of_processes": [len(sitting.rounds) for sitting in found.found.sittings],
        "dropped": found.found.dropped,
    }


def _table(found: Explanation, unlike: tuple[str, ...]) -> Table:
    from trainmark.report.explanation_table import crossing_sentence, explanation_table, sentences

    subject = found.subject
    side = subject.side
    dissection = found.found
    rounds = many(len(dissection.rounds), "interleaved round")
    how = f"{rounds} in {many(len(dissection.sittings), 'process')}"
    given = subject.scheduled.workload
    tokens = f" of {given.input.network_shape[0]:,} tokens" if given.is_text else ""
    size = f"{many(subject.batch, 'example')}{tokens} per step"
    conditions = [f"{subject.scheduled.dataset.name}, {size}, {side.precision}, {how}"]
    if subject.starved:
        conditions.append(f"all rows except threads were measured with {subject.cores} threads")
    notes = [f"{each[0].upper()}{each[1:]}." for each in unlike]
    if subject.busy:
        notes.append(
            f"{Caveat.BUSY_MACHINE.value}: other processes used the CPU; don't trust small shares."
        )
    notes += [f"{name} is missing: {reason}." for name, reason in dissection.dropped.items()]
    sentences_shown = sentences(found.attribution, found.advice)
    if subject.busy:
        sentences_shown[0] += (
            " But the machine was busy: repeat this when it is idle before you rely on it."
        )
    if found.crossing is not None:
        sentences_shown.append(crossing_sentence(found.crossing, side.device))
    elif found.no_crossing is not None:
        sentences_shown.append(
            f"The batch size at which {side.device} overtakes the CPU was not found: "
            f"{found.no_crossing}."
        )
    title = f"{given.name}: {side.title}"
    return explanation_table(
        title,
        tuple(conditions),
        found.attribution,
        (*sentences_shown[1:], *notes),
        answer=sentences_shown[0],
    )
