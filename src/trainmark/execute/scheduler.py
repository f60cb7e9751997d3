"""Runs the tasks one after the other, and leaves a record of every run that was started, however it ended."""

from __future__ import annotations

import contextlib
import secrets
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from trainmark.errors import ProtocolError
from trainmark.execute.child import Ending, converse
from trainmark.execute.here import Here, look_around
from trainmark.execute.notes import Notes
from trainmark.execute.peaks import Key
from trainmark.execute.plan import Run, Task
from trainmark.execute.probe import Seen
from trainmark.execute.wire import Message
from trainmark.measure.sampler import Row, Sampler
from trainmark.record.record import Outcome, Peaks, Record, Status
from trainmark.record.store import Store


class Observer(Protocol):
    """Whoever watches. Called in the parent, between the child's messages; nothing here touches the child's clock."""

    def task_started(self, task: Task) -> None:
        """A process begins."""

    def run_started(self, run: Run, replayed: bool) -> None:
        """The process begins a run; a replayed one leaves no record."""

    def heard(self, message: Message) -> None:
        """The process said something of the run."""

    def counted(self, steps: int) -> None:
        """So many steps of the process are done, called a few times a second."""

    def sampled(self, rows: Sequence[Row], gpu: int | None) -> None:
        """What is seen of the process from outside: the newest rows, the last one now, and which GPU it trains on."""

    def recorded(self, record: Record) -> None:
        """A record was written."""

    def task_ended(self, task: Task) -> None:
        """The process is gone."""


def execute(
    tasks: list[Task],
    seen: Mapping[tuple[str, str], Seen],
    store: Store,
    observer: Observer,
    here: Callable[[], Here] = look_around,
    sampler: Sampler | None = None,
    peaks: Mapping[Key, Peaks] | None = None,
) -> list[Record]:
    """Carry out ``tasks`` in order.

    Args:
        seen: what each backend said of itself, by (backend, interpreter label).
        store: where records go.
        observer: told of everything.
        here: reads the machine before each process.
        sampler: watches every process; reads this machine by default.
        peaks: measured limits of the sides.

    Returns:
        The records, in the order of the runs. After KeyboardInterrupt the run at hand is recorded as interrupted
        before the exception goes on.
    """
    records: list[Record] = []
    sampler = sampler or Sampler()
    for task in tasks:
        side = task.first.side
        seen_of_side = seen[side.backend, side.interpreter.label]
        limits = (peaks or {}).get((side, task.first.settings.threads))
        _Conversation(task, seen_of_side, here(), limits, store, observer, sampler, records).hold()
    return records


class _Conversation:
    """One task: its process, and the notes of the runs in it."""

    def __init__(
        self,
        task: Task,
        seen: Seen,
        here: Here,
        peaks: Peaks | None,
        store: Store,
        observer: Observer,
        sampler: Sampler,
        records: list[Record],
    ) -> None:
        self._task, self._store, self._observer, self._records = task, store, observer, records
        self._sampler, self._origin = sampler, 0.0
        token = secrets.token_hex(4)
        replayed = bool(task.done)
        self._notes = [Notes(run, seen, here, peaks, replayed, token) for run in task.runs]
        self._index = 0
        self._end: Message | None = None

    @property
    def _current(self) -> Notes:
        return self._notes[self._index]

    @property
    def _all_written(self) -> bool:
        return self._index == len(self._notes)

    def hold(self) -> None:
        settings = self._task.first.settings
        files: list[Path | None] = [
            notes.weights_file(self._store.folder) if settings.save_weights and index not in self._task.done else None
            for index, notes in enumerate(self._notes)
        ]
        self._observer.task_started(self._task)
        self._announce()
        try:
            ending = converse(
                self._task.first.side.interpreter.path,
                lambda origin: self._request(origin, files),
                hear=self._hear,
                born=self._sampler.watch,
                look=self._look,
                threads=settings.threads,
                timeout=settings.timeout,
            )
        except KeyboardInterrupt:
            self._break_off(Outcome("interrupted", "Ctrl-C or SIGTERM"))
            raise
        except ProtocolError as error:
            self._break_off(Outcome("failed", str(error)))
        except OSError as error:  # the interpreter went away, or the system has no process left to give
            self._break_off(Outcome("failed", f"the process can't be started: {error}"))
        else:
            self._break_off(_outcome(ending, self._end))
        self._observer.task_ended(self._task)

    def _request(self, origin: float, weight_files: list[Path | None]) -> Message:
        self._origin = origin
        return self._task.request(origin, weight_files)

    def _look(self, steps: int) -> None:
        self._sampler.look()
        if not self._all_written:
            self._observer.sampled(self._sampler.latest, self._current.gpu)
            self._observer.counted(steps)

    def _hear(self, message: Message) -> None:
        event = message["event"]
        if event in ("diverged", "failed"):
            self._end = message
        if self._all_written:
            return
        self._current.hear(message)
        if event == "epoch":
            self._current.hold_memory(self._sampler.proportional_bytes(self._current.rest_seconds))
        if event in ("ready", "epoch", "evaluated"):
            self._observer.heard(message)
        if event == "finished":
            self._write(Outcome("ok"))

    def _break_off(self, outcome: Outcome) -> None:
        """The process is gone: whatever run it was at ends like this."""
        if not self._all_written:
            self._write(outcome)

    def _write(self, outcome: Outcome) -> None:
        """Record the run at hand, unless its record exists, and go on to the next."""
        notes = self._current
        samples = self._sampler.take(self._origin)
        with _undisturbed():
            if self._index not in self._task.done:
                record = notes.record(outcome, samples)
                self._store.write(record)
                self._records.append(record)
                self._observer.recorded(record)
            self._index += 1
        if outcome.status == "ok" and not self._all_written:
            self._current.go_on_from(notes)
            self._announce()

    def _announce(self) -> None:
        self._observer.run_started(self._current.run, self._index in self._task.done)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold Ctrl-C back for a moment: a record is written and counted, or neither."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _outcome(ending: Ending, said: Message | None) -> Outcome:
    """The outcome of a run that did not finish."""
    if said is not None and said["event"] == "diverged":
        return Outcome("diverged", said["reason"], step=said["step"], loss_before=said["before"])
    status: Status = "timeout" if ending.status == "timeout" else "failed"
    reason = said["reason"] if said is not None else ending.reason
    return Outcome(status, reason or "the process ended early", stderr_tail=ending.tail or None)
