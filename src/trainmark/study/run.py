"""Run workloads or a command in interleaved rounds and record each run.

``trainmark run``, ``trainmark measure`` and :func:`trainmark.run` call these functions.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from trainmark.analysis.slices import FEWEST_BLOCKS
from trainmark.execute.parent.command import (
    Command,
    CommandRun,
    CommandSide,
    is_python,
    require_program,
    require_small,
)
from trainmark.execute.parent.machine_state import MachineState, read_machine_state
from trainmark.execute.parent.opening import OpeningListener
from trainmark.execute.parent.peaks import Keep, PeakKey, find_peaks
from trainmark.execute.parent.plan import Run, Settings
from trainmark.execute.parent.probe import Seen
from trainmark.execute.parent.record_builder import ThreadsByTitle
from trainmark.execute.parent.request import RunRequest, prepare
from trainmark.execute.parent.scheduler import RunsInterrupted, execute
from trainmark.execute.parent.task import AnyRun, Task, command_in_rounds, remaining
from trainmark.execute.parent.time_limit import TimeLimit
from trainmark.execute.parent.turns import GPU_SLICE_SECONDS, SLICE_SECONDS
from trainmark.measure.vendors import read_driver
from trainmark.record.facts import RunKey
from trainmark.record.record import Peaks, Record
from trainmark.record.store import Store
from trainmark.study.earlier import earlier_records
from trainmark.study.observer import StudyObserver
from trainmark.study.rounds import (
    Budget,
    rounds_within,
    slices_alone,
)
from trainmark.study.written import note_of_changes, snapshot
from trainmark.units import many


@dataclass(frozen=True)
class RoundOptions:
    """How rounds of trainings or commands are run.

    Args:
        resume: skip recorded runs of the newest group of this plan.
        budget: budget of the verdict; None runs only the planned rounds.
        labels: labels of this machine, for the records.
        dry_run: show what would run, without running it.
        goes_on: continue after a first round in which a run failed.
        began: reading of ``time.perf_counter`` at which the budget began; None is when the study
            begins.
    """

    resume: bool = False
    budget: Budget | None = None
    labels: Mapping[str, str] | None = None
    dry_run: bool = False
    goes_on: bool = True
    began: float | None = None

    def limit(self) -> TimeLimit:
        """Return the time limit of a study that begins now."""
        began = time.perf_counter() if self.began is None else self.began
        return (self.budget or Budget(0.0)).limit(began)


@dataclass(frozen=True)
class Measured:
    """What a study has measured.

    Args:
        records: the new records.
        earlier: with ``resume``, those that were there before.
        interrupted: whether Ctrl-C ended it.
    """

    records: list[Record]
    earlier: list[Record]
    interrupted: bool = False


def run(
    request: RunRequest, store: Store, progress: StudyObserver, options: RoundOptions
) -> Measured:
    """Train what is requested, in interleaved rounds.

    Raises:
        UsageError, DataError: with what was expected, what was found, and what to do.
    """
    limit = options.limit()
    with progress.preparing() as preparation:
        prepared = prepare(request, preparation, limit)
    # Repeats that continue each other have no further rounds.
    continues = any(
        task.first.scheduled.workload.schedule.protocol == "continued" for task in prepared.tasks
    )
    for notice in prepared.notices:
        progress.message(f"note: {notice}")

    before = read_driver()

    def look_now() -> MachineState:
        """Read the machine's state, with its GPUs as they were before trainmark used them."""
        return dataclasses.replace(read_machine_state(), driver=before)

    def peaks(tasks: list[Task[Run]], *, only_kept: bool) -> dict[PeakKey, Peaks]:
        places = [(task.first.side, task.first.settings.threads) for task in tasks]
        kept = Keep(request.cache / "limits")
        with progress.preparing() as preparation:
            return find_peaks(
                places,
                prepared.seen,
                kept,
                look_now,
                preparation.measuring,
                only_kept=only_kept,
                limit=limit,
            )

    tasks = with_fair_cpu(prepared.tasks, prepared.seen)
    adds_rounds = not (options.resume or continues)
    return _in_rounds(
        tasks,
        prepared.seen,
        store,
        progress,
        options,
        announcement,
        peaks,
        limit,
        adds_rounds=adds_rounds,
    )


def with_fair_cpu(
    tasks: Sequence[Task[Run]], seen: Mapping[tuple[str, str], Seen]
) -> list[Task[Run]]:
    """Mark the CPU's runs that are compared with an accelerator, to find their best threads.

    Args:
        tasks: the plan.
        seen: what each backend supports, by (backend, interpreter label).
    """

    def is_on_accelerator(run: Run) -> bool:
        device = seen[run.side.backend, run.side.interpreter.label].device(run.side.device)
        return device is not None and device.kind == "accelerator"

    accelerated = [task.first.scheduled for task in tasks if is_on_accelerator(task.first)]
    marked: list[Task[Run]] = []
    for task in tasks:
        run = task.first
        is_open = run.settings.threads is None and not is_on_accelerator(run)
        if is_open and any(run.scheduled == scheduled for scheduled in accelerated):
            runs = tuple(dataclasses.replace(each, next_to_accelerator=True) for each in task.runs)
            marked.append(Task(runs, task.done))
        else:
            marked.append(task)
    return marked


def with_fair_cpu_of_command(tasks: Sequence[Task[CommandRun]]) -> list[Task[CommandRun]]:
    """Mark a command's runs on the CPU, as :func:`with_fair_cpu` does those of a workload."""
    is_compared = any(task.first.side.device not in ("cpu", None) for task in tasks)
    marked: list[Task[CommandRun]] = []
    for task in tasks:
        run = task.first
        is_open = run.settings.threads is None and run.side.device == "cpu"
        run = dataclasses.replace(run, next_to_accelerator=is_open and is_compared)
        marked.append(Task((run,), task.done))
    return marked


def in_copies(command: Command, store: Store) -> Command:
    """Return the command in copies of its working folder, whose first outputs are kept."""
    outputs = store.folder.absolute() / "outputs" / f"{command.name}-{secrets.token_hex(4)}"
    return dataclasses.replace(command, scratch=True, outputs=outputs)


def measure(
    command: Command,
    sides: Sequence[CommandSide],
    repeats: int,
    settings: Settings,
    store: Store,
    progress: StudyObserver,
    options: RoundOptions,
) -> Measured:
    """Run ``command`` in interleaved rounds; returns what :func:`run` returns.

    Args:
        sides: the values of its placeholders.

    Raises:
        UsageError: a program that can't be started, or a working folder that is too large to copy.
    """
    limit = options.limit()
    tasks = with_fair_cpu_of_command(command_in_rounds(command, sides, repeats, settings))
    if command.scratch:
        require_small(command)
    if options.budget and options.budget.seconds and command.inject:
        blocks = _blocks_within(options.budget.seconds / repeats, sides)
        tasks = [slices_alone(task, blocks) for task in tasks]
    before = {} if command.scratch else snapshot(command.directory, store.folder)
    for program in dict.fromkeys((task.first.words or [""])[0] for task in tasks):
        require_program(program, command.directory)
    found = _in_rounds(
        tasks,
        {},
        store,
        progress,
        options,
        _command_announcement,
        _no_peaks,
        limit,
        adds_rounds=True,
    )
    ended = [record for record in found.records if record.outcome.status == "ok"]
    is_observable = command.inject and is_python(command.template)
    if is_observable and ended and not any(record.observed for record in ended):
        why = "this Python did not load it, as with -I, -E or -S"
        if any(record.process and record.process.attached for record in ended):
            why = "no supported framework made a step"
        progress.message(
            f"note: the observer saw no training ({why}), so whole processes are measured"
        )
    if command.outputs and command.outputs.exists():
        progress.message(
            "note: the runs worked in copies of this folder; what the first complete one wrote is "
            f"in {command.outputs}"
        )
    wrote = (
        None
        if command.scratch
        else note_of_changes(before, snapshot(command.directory, store.folder))
    )
    if wrote:
        progress.message(wrote)
    return found


def _blocks_within(seconds: float, sides: Sequence[CommandSide]) -> int:
    """Return the number of blocks of a round of commands that end after them."""
    on_cpu = all(side.device in ("cpu", None) for side in sides)
    length = SLICE_SECONDS if on_cpu else GPU_SLICE_SECONDS
    return max(round(seconds / (2 * length * len(sides))), FEWEST_BLOCKS)


class FindPeaks(Protocol[AnyRun]):
    """Finds the peak speeds of the devices of tasks."""

    def __call__(self, tasks: list[Task[AnyRun]], /, *, only_kept: bool) -> dict[PeakKey, Peaks]:
        """Measure the peaks; with ``only_kept``, take only those that are known already."""


def _no_peaks(_: list[Task[CommandRun]], /, *, only_kept: bool) -> dict[PeakKey, Peaks]:  # noqa: ARG001
    """Return nothing: the peaks of the devices that a command uses are unknown."""
    return {}


def _in_rounds(
    planned: list[Task[AnyRun]],
    seen: Mapping[tuple[str, str], Seen],
    store: Store,
    progress: StudyObserver,
    options: RoundOptions,
    announce: Callable[[list[Task[AnyRun]]], str],
    find_peaks: FindPeaks[AnyRun],
    limit: TimeLimit,
    *,
    adds_rounds: bool,
) -> Measured:
    with store.locked():
        earlier = earlier_records(store, progress) if options.resume else []
        tasks = remaining(planned, earlier)
        if not tasks:
            return Measured([], earlier)
        resumed = _runs_left(planned) - _runs_left(tasks)
        found = f" {many(resumed, 'run')} already recorded." if resumed else ""
        if options.dry_run:
            progress.message(f"{announce(tasks)}{found}")
            return Measured([], earlier)
        progress.message(
            f"{announce(tasks)}{found} Ctrl-C keeps finished runs; --resume continues."
        )
        peaks: dict[PeakKey, Peaks] = {}
        threads = known_threads(tasks, earlier)
        read_state = partial(read_machine_state, options.labels)
        apart = list[object]()

        running = progress.running(tasks, store.folder, limit=limit)
        records = list[Record]()

        def repeats_failure() -> bool:
            return not options.goes_on and any(map(has_failed, records))

        def carry_out(
            these: list[Task[AnyRun]], opening: OpeningListener | None = None, /
        ) -> list[Record]:
            if repeats_failure():
                return []
            try:
                with running as observer:
                    found = execute(
                        these,
                        seen,
                        store,
                        observer,
                        read_state,
                        peaks=peaks,
                        apart=apart,
                        opening=opening,
                        threads=threads,
                        goes_on=options.goes_on,
                        limit=limit,
                    )
            except RunsInterrupted as interruption:
                records.extend(interruption.records)
                raise
            records.extend(found)
            return found

        def measure_peaks(*, only_kept: bool = False) -> None:
            peaks.update(find_peaks(tasks, only_kept=only_kept))

        compared = len({task.first.side.title for task in tasks}) > 1
        try:
            rounds_within(
                options.budget or Budget(0.0),
                tasks,
                carry_out,
                progress.message,
                measure_peaks=measure_peaks,
                began=limit.began,
                adds_rounds=adds_rounds and compared,
            )
        except KeyboardInterrupt:
            return Measured(records, earlier, interrupted=True)
        done = {record.round for record in records}
        if repeats_failure() and len(done) < len({task.round for task in tasks}):
            why = "A run failed"
            if all(record.outcome.status == "ok" for record in records):
                why = "The figure that --metric names was not found"
            progress.message(
                f"{why}, so the other rounds were skipped; --ignore-failure runs them anyway."
            )
        return Measured(records, earlier)


def has_failed(record: Record) -> bool:
    """Return whether a run failed, or ended without the figure that ``--metric`` names."""
    metric = record.named_metric
    lacks_metric = metric is not None and metric.is_final and metric.last is None
    return record.outcome.status != "ok" or lacks_metric


def known_threads(tasks: Sequence[Task[AnyRun]], earlier: Iterable[Record]) -> ThreadsByTitle:
    """Return the best numbers of CPU threads that earlier runs of these groups have found.

    Otherwise the rounds of a resumed study would differ in their number of threads.
    """
    titles = {task.first.key.of_side: task.first.title for task in tasks}
    groups = {task.first.group_id for task in tasks}
    found: ThreadsByTitle = {}
    for record in earlier:
        title = titles.get(RunKey.of(record).of_side)
        if title is not None and record.threads_search is not None and record.group.id in groups:
            found[title] = record.threads_search
    return found


def _runs_left(tasks: Sequence[Task[AnyRun]]) -> int:
    return sum(len(task.runs) - len(task.done) for task in tasks)


def announcement(tasks: Sequence[Task[Run]]) -> str:
    """Describe the plan in one or two sentences."""
    sides = dict.fromkeys(task.first.side.title for task in tasks)
    workloads = dict.fromkeys(task.first.scheduled.workload.name for task in tasks)
    rounds = max(task.runs[-1].round for task in tasks) + 1
    what = f"{', '.join(workloads)} on {', '.join(sides)}"
    text = f"{many(_runs_left(tasks), 'run')}: {what}, {many(rounds, 'round')}."
    if len(workloads) > 1:
        text += " Sides of the same workload are compared; different workloads are not."
    return text


def _command_announcement(tasks: Sequence[Task[CommandRun]]) -> str:
    sides = dict.fromkeys(
        task.first.side.title if task.first.side.style else "unchanged" for task in tasks
    )
    rounds = many(1 + max(task.round for task in tasks), "round")
    name = tasks[0].first.of.name
    return f"{many(len(tasks), 'run')}: {name}, {'; '.join(sides)}, {rounds}."
