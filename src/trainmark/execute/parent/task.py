"""Tasks in execution order.

The order is by rounds, so that a slow drift of the machine affects every side alike.
"""

from __future__ import annotations

import dataclasses
import itertools
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from trainmark.execute.parent.command import Command, CommandRun, CommandSide
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side
from trainmark.record.caveats import Caveat
from trainmark.record.facts import RunKey, group_to_complete
from trainmark.record.record import Record

AnyRun = TypeVar("AnyRun", Run, CommandRun)


@dataclass(frozen=True)
class Task(Generic[AnyRun]):
    """Runs that share one process: one, or all repeats of a continued training.

    Args:
        done: indices of the runs that already have a record; a continued training replays them,
            unrecorded.
    """

    runs: tuple[AnyRun, ...]
    done: frozenset[int] = frozenset()

    @property
    def first(self) -> AnyRun:
        """The first run; it differs from the others only in its repeat."""
        return self.runs[0]

    @property
    def round(self) -> int:
        """The round of its first run."""
        return self.first.round

    def in_round(self, number: int) -> Task[AnyRun]:
        """Return the task in another round, with no run done."""
        return Task(
            tuple(dataclasses.replace(run, repeat=number, round=number) for run in self.runs)
        )


def in_rounds(
    scheduled_workloads: Iterable[tuple[ScheduledWorkload, list[Side]]], settings: Settings
) -> list[Task[Run]]:
    """Return the tasks in execution order: each round runs every side of a workload once."""
    tasks = []
    group_id = session = secrets.token_hex(6)
    for scheduled, sides in scheduled_workloads:
        continued = scheduled.workload.schedule.protocol == "continued"
        for round_ in range(1 if continued else scheduled.repeats):
            repeats = range(scheduled.repeats) if continued else (round_,)
            for side in sides:
                runs = (
                    Run(scheduled, side, settings, index, index, group_id, session)
                    for index in repeats
                )
                tasks.append(Task(tuple(runs)))
    return tasks


def command_in_rounds(
    command: Command, sides: Sequence[CommandSide], rounds: int, settings: Settings
) -> list[Task[CommandRun]]:
    """Return the tasks in execution order: each round runs every side once."""
    group_id = session = secrets.token_hex(6)
    tasks = []
    for index in range(rounds):
        for side in sides:
            run = CommandRun(command, side, settings, index, index, group_id, session)
            tasks.append(Task((run,)))
    return tasks


def parties(tasks: Iterable[Task[AnyRun]]) -> Iterator[tuple[object, list[Task[AnyRun]]]]:
    """Group tasks that run interleaved: the sides of each round, with their subject.

    Any other task runs by itself.
    """
    numbered = enumerate(tasks)
    for (subject, _), together in itertools.groupby(numbered, key=lambda each: _party(*each)):
        yield subject, [task for _, task in together]


def _party(position: int, task: Task[Any]) -> tuple[object, int]:
    run: Run | CommandRun = task.first
    if isinstance(run, CommandRun):
        return run.of, run.round
    match run.settings.kind:
        case "rounds":
            return run.scheduled, run.round
        case "scale" if run.blocks is not None:  # layouts of one study, each with a separate plan
            return run.group_id, run.round
        case _:
            return None, position


def remaining(tasks: Iterable[Task[AnyRun]], records: Iterable[Record]) -> list[Task[AnyRun]]:
    """Return the tasks with runs that have neither succeeded nor diverged.

    They belong to the group that they complete.
    """
    tasks = list(tasks)
    records = list(records)
    every_run = itertools.chain.from_iterable(task.runs for task in tasks)
    group = group_to_complete({run.key for run in every_run}, records)
    recorded = {
        RunKey.of(record): record.outcome.status
        for record in records
        if record.group.id == group and Caveat.SHORTENED not in record.caveats
    }
    left = []
    for task in tasks:
        ends = [recorded.get(run.key) for run in task.runs]
        done = frozenset(index for index, end in enumerate(ends) if end == "ok")
        if len(done) < len(task.runs) and "diverged" not in ends:  # it would diverge again
            runs = tuple(
                dataclasses.replace(run, group_id=group or run.group_id) for run in task.runs
            )
            left.append(Task(runs, done))
    return left
