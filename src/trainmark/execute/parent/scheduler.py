"""Runs the tasks one after the other, and leaves a record of every run that was started, however it ended."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmark.errors import ProtocolError
from trainmark.execute.parent.command import CommandRun
from trainmark.execute.parent.command_record import CommandRecordBuilder
from trainmark.execute.parent.here import Here, look_around
from trainmark.execute.parent.peaks import Key
from trainmark.execute.parent.plan import Run
from trainmark.execute.parent.probe import Seen
from trainmark.execute.parent.process import Ending, run_worker
from trainmark.execute.parent.ranks_record import RanksRecordBuilder
from trainmark.execute.parent.record_builder import RecordBuilder
from trainmark.execute.parent.task import AnyRun, Task
from trainmark.execute.parent.training_record import TrainingRecordBuilder
from trainmark.execute.parent.undisturbed import undisturbed
from trainmark.execute.protocol.answers import (
    Answer,
    CommandStarted,
    Diverged,
    EpochEnded,
    Failed,
    Finished,
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


class Observer:
    """Watches runs; override the methods you need. Called in the parent, between the child's messages, so nothing here
    touches the child's clock."""

    def task_started(self, task: Task[Any]) -> None:
        """A process begins."""

    def run_started(self, run: Run | CommandRun, replayed: bool) -> None:
        """The process begins a run; a replayed one leaves no record."""

    def heard(self, answer: Answer) -> None:
        """The process said something of the run."""

    def counted(self, steps: int) -> None:
        """So many steps of the process are done, called a few times a second; may raise :class:`RunStopped`."""

    def sampled(self, rows: Sequence[Row], gpu: int | None) -> None:
        """What is seen of the process from outside: the newest rows, the last one now, and which GPU it trains on."""

    def recorded(self, record: Record) -> None:
        """A record was written."""

    def task_ended(self, task: Task[Any]) -> None:
        """The process is gone."""


def execute(
    tasks: Sequence[Task[AnyRun]],
    seen: Mapping[tuple[str, str], Seen],
    store: Store,
    observer: Observer,
    here: Callable[[], Here] = look_around,
    sampler: Sampler | None = None,
    peaks: Mapping[Key, Peaks] | None = None,
) -> list[Record]:
    """Run ``tasks`` in order.

    Args:
        seen: what each backend can do, by (backend, interpreter label); commands need none.
        store: where records go.
        observer: told of everything.
        here: reads the machine before each process.
        sampler: watches every process; reads this machine by default.
        peaks: measured peaks of the sides.

    Returns:
        The records, in the order of the runs. After KeyboardInterrupt the current run is recorded as interrupted
        before the exception is passed on.
    """
    records: list[Record] = []
    sampler = sampler or Sampler()
    for task in tasks:
        builders = _builders(task, here(), seen, peaks or {})
        _Conversation(task, builders, store, observer, sampler, records).hold()
    return records


def _builders(
    task: Task[Any], here: Here, seen: Mapping[tuple[str, str], Seen], peaks: Mapping[Key, Peaks]
) -> list[RecordBuilder]:
    """One for each run of ``task``."""
    token = secrets.token_hex(4)
    first: Run | CommandRun = task.first
    if isinstance(first, CommandRun):
        return [CommandRecordBuilder(first, here, token)]
    side = first.side
    peak, of_side = peaks.get((side, first.settings.threads)), seen[side.backend, side.interpreter.label]
    if first.spread is not None and first.spread.launched:
        return [RanksRecordBuilder(first, of_side, here, peak, token)]
    return [TrainingRecordBuilder(run, of_side, here, peak, bool(task.done), token) for run in task.runs]


class _Conversation:
    """One task: its process, and the record builders of its runs."""

    def __init__(
        self,
        task: Task[Any],
        builders: Sequence[RecordBuilder],
        store: Store,
        observer: Observer,
        sampler: Sampler,
        records: list[Record],
    ) -> None:
        self._task, self._store, self._observer, self._records = task, store, observer, records
        self._sampler, self._origin = sampler, 0.0
        self._builders = builders
        self._index = 0
        self._end: Failed | Diverged | None = None

    @property
    def _current(self) -> RecordBuilder:
        return self._builders[self._index]

    @property
    def _all_written(self) -> bool:
        return self._index == len(self._builders)

    def hold(self) -> None:
        task, run = self._task, self._task.first
        files: list[Path | None] = [
            builder.weights_file(self._store.folder) if run.settings.save_weights and index not in task.done else None
            for index, builder in enumerate(self._builders)
        ]
        self._observer.task_started(self._task)
        self._announce()
        try:
            ending = run_worker(
                run.python,
                lambda origin: self._request(origin, files),
                hear=self._hear,
                born=self._sampler.watch,
                look=self._look,
                threads=run.settings.threads,
                timeout=run.settings.timeout,
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
        run: Run | CommandRun = self._task.first
        return run.request(origin, weight_files)

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
        self._observer.heard(answer)
        if isinstance(answer, Finished):
            self._write(Outcome("ok"))

    def _break_off(self, outcome: Outcome) -> None:
        """The process is gone: whatever run it was at ends like this."""
        if not self._all_written:
            self._write(outcome)

    def _write(self, outcome: Outcome) -> None:
        """Record the current run, unless its record exists, and continue with the next."""
        builder = self._current
        samples = self._sampler.take(self._origin)
        with undisturbed():
            if self._index not in self._task.done:
                records = builder.records(outcome, samples)
                self._store.write_all(records)
                self._records += records
                self._observer.recorded(self._records[-1])
            self._index += 1
        if outcome.status == "ok" and not self._all_written:
            self._current.continue_from(builder)
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
