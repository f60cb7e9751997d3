"""Runs the tasks one after the other, and leaves a record of every run that was started, however it ended.

A task is a process and its runs: a training of ours, or a command of somebody's own.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from trainmark.errors import ProtocolError
from trainmark.execute.parent.command import Run as CommandRun
from trainmark.execute.parent.command import Task as CommandTask
from trainmark.execute.parent.command_notes import CommandNotes
from trainmark.execute.parent.here import Here, look_around
from trainmark.execute.parent.notes import Notes
from trainmark.execute.parent.peaks import Key
from trainmark.execute.parent.plan import Run, Task
from trainmark.execute.parent.probe import Seen
from trainmark.execute.parent.process import Ending, converse
from trainmark.execute.parent.spread_notes import SpreadNotes
from trainmark.execute.parent.undisturbed import undisturbed
from trainmark.execute.protocol.answers import (
    Answer,
    CommandStarted,
    Diverged,
    EpochEnded,
    Evaluated,
    Failed,
    Finished,
    Ready,
)
from trainmark.execute.protocol.requests import Request
from trainmark.measure.sampler import Row, Sampler
from trainmark.record.record import Outcome, Peaks, Record, Status
from trainmark.record.store import Store


class RunStopped(Exception):
    """Raised by an observer to end the current run: its result is what it has done so far.

    Args:
        reason: for the record.
    """


Job = Task | CommandTask
"""A process and its runs; ``done`` are indices of runs whose records exist already, ``kind`` is equal for those that
take about as long."""
Planned = Run | CommandRun
Noting = Notes | CommandNotes
"""Who collects the answers of one run."""
_Job = TypeVar("_Job", Task, CommandTask)


class Observer:
    """Watches runs; override the methods you need. Called in the parent, between the child's messages, so nothing here
    touches the child's clock."""

    def task_started(self, task: Job) -> None:
        """A process begins."""

    def run_started(self, run: Planned, replayed: bool) -> None:
        """The process begins a run; a replayed one leaves no record."""

    def heard(self, answer: Answer) -> None:
        """The process said something of the run."""

    def counted(self, steps: int) -> None:
        """So many steps of the process are done, called a few times a second; may raise :class:`RunStopped`."""

    def sampled(self, rows: Sequence[Row], gpu: int | None) -> None:
        """What is seen of the process from outside: the newest rows, the last one now, and which GPU it trains on."""

    def recorded(self, record: Record) -> None:
        """A record was written."""

    def task_ended(self, task: Job) -> None:
        """The process is gone."""


def execute(
    tasks: Sequence[Task],
    seen: Mapping[tuple[str, str], Seen],
    store: Store,
    observer: Observer,
    here: Callable[[], Here] = look_around,
    sampler: Sampler | None = None,
    peaks: Mapping[Key, Peaks] | None = None,
) -> list[Record]:
    """Train ``tasks`` in order; see :func:`carry_out`.

    Args:
        seen: what each backend said of itself, by (backend, interpreter label).
        peaks: measured limits of the sides.
    """

    def notes(task: Task, here: Here) -> list[Notes]:
        side, token = task.first.side, secrets.token_hex(4)
        limits = (peaks or {}).get((side, task.threads))
        of_side = seen[side.backend, side.interpreter.label]
        if task.first.spread is not None and task.first.spread.launched:
            return [SpreadNotes(task.first, of_side, here, limits, token)]
        return [Notes(run, of_side, here, limits, bool(task.done), token) for run in task.runs]

    return carry_out(tasks, notes, store, observer, here, sampler)


def carry_out(
    tasks: Sequence[_Job],
    notes: Callable[[_Job, Here], Sequence[Noting]],
    store: Store,
    observer: Observer,
    here: Callable[[], Here] = look_around,
    sampler: Sampler | None = None,
) -> list[Record]:
    """Carry out ``tasks`` in order.

    Args:
        notes: of the runs of a task, before which the machine was as given.
        store: where records go.
        observer: told of everything.
        here: reads the machine before each process.
        sampler: watches every process; reads this machine by default.

    Returns:
        The records, in the order of the runs. After KeyboardInterrupt the run at hand is recorded as interrupted
        before the exception goes on.
    """
    records: list[Record] = []
    sampler = sampler or Sampler()
    for task in tasks:
        _Conversation(task, notes(task, here()), store, observer, sampler, records).hold()
    return records


class _Conversation:
    """One task: its process, and the notes of the runs in it."""

    def __init__(
        self,
        task: Job,
        notes: Sequence[Noting],
        store: Store,
        observer: Observer,
        sampler: Sampler,
        records: list[Record],
    ) -> None:
        self._task, self._store, self._observer, self._records = task, store, observer, records
        self._sampler, self._origin = sampler, 0.0
        self._notes = notes
        self._index = 0
        self._end: Failed | Diverged | None = None

    @property
    def _current(self) -> Noting:
        return self._notes[self._index]

    @property
    def _all_written(self) -> bool:
        return self._index == len(self._notes)

    def hold(self) -> None:
        task = self._task
        files: list[Path | None] = [
            notes.weights_file(self._store.folder) if task.save_weights and index not in task.done else None
            for index, notes in enumerate(self._notes)
        ]
        self._observer.task_started(self._task)
        self._announce()
        try:
            ending = converse(
                task.python,
                lambda origin: self._request(origin, files),
                hear=self._hear,
                born=self._sampler.watch,
                look=self._look,
                threads=task.threads,
                timeout=task.timeout,
            )
        except KeyboardInterrupt:
            self._break_off(Outcome("interrupted", "Ctrl-C or SIGTERM"))
            raise
        except RunStopped as stopped:
            self._break_off(Outcome("ok", str(stopped)))
        except ProtocolError as error:
            self._break_off(Outcome("failed", str(error)))
        except OSError as error:  # the interpreter went away, or the system has no process left to give
            self._break_off(Outcome("failed", f"the process can't be started: {error}"))
        else:
            self._break_off(_outcome(ending, self._end))
        self._observer.task_ended(task)

    def _request(self, origin: float, weight_files: list[Path | None]) -> Request:
        self._origin = origin
        return self._task.request(origin, weight_files)

    def _look(self, steps: int) -> None:
        self._sampler.look()
        if not self._all_written:
            self._observer.sampled(self._sampler.latest, self._current.gpu)
            self._observer.counted(steps)

    def _hear(self, answer: Answer) -> None:
        if isinstance(answer, (Failed, Diverged)):
            self._end = answer
        elif isinstance(answer, CommandStarted):  # what is watched is the command, not our process before it
            self._sampler.watch(answer.pid)
        if self._all_written:
            return
        self._current.hear(answer)
        if isinstance(answer, EpochEnded):
            self._current.hold_memory(self._sampler.proportional_bytes(self._current.rest_seconds))
        if isinstance(answer, (Ready, EpochEnded, Evaluated)):
            self._observer.heard(answer)
        if isinstance(answer, Finished):
            self._write(Outcome("ok"))

    def _break_off(self, outcome: Outcome) -> None:
        """The process is gone: whatever run it was at ends like this."""
        if not self._all_written:
            self._write(outcome)

    def _write(self, outcome: Outcome) -> None:
        """Record the current run, unless its record exists, and continue with the next."""
        notes = self._current
        samples = self._sampler.take(self._origin)
        with undisturbed():
            if self._index not in self._task.done:
                records = notes.records(outcome, samples)
                self._store.write_all(records)
                self._records += records
                self._observer.recorded(self._records[-1])
            self._index += 1
        if outcome.status == "ok" and not self._all_written:
            self._current.go_on_from(notes)
            self._announce()

    def _announce(self) -> None:
        self._observer.run_started(self._current.run, self._index in self._task.done)


def _outcome(ending: Ending, said: Failed | Diverged | None) -> Outcome:
    """The outcome of a run that did not finish."""
    if isinstance(said, Diverged):
        return Outcome("diverged", said.reason, step=said.step, loss_before=said.before)
    status: Status = "timeout" if ending.status == "timeout" else "failed"
    reason = said.reason if said is not None else ending.reason
    return Outcome(status, reason or "the process ended early", stderr_tail=ending.tail or None)
