"""Runs the tasks, round by round, and writes a record of every started run, however it ended."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from trainmark.errors import ProtocolError
from trainmark.execute.parent.command import CommandRun
from trainmark.execute.parent.command_record import CommandRecordBuilder
from trainmark.execute.parent.here import Here, look_around
from trainmark.execute.parent.peaks import Key
from trainmark.execute.parent.plan import Run
from trainmark.execute.parent.probe import Seen
from trainmark.execute.parent.process import Ears, Ending, Source, Worker
from trainmark.execute.parent.ranks_record import RanksRecordBuilder
from trainmark.execute.parent.record_builder import RecordBuilder
from trainmark.execute.parent.task import AnyRun, Task, parties
from trainmark.execute.parent.training_record import TrainingRecordBuilder
from trainmark.execute.parent.turns import GPU_SLICE_SECONDS, SLICE_SECONDS, Turn, Turns
from trainmark.execute.parent.undisturbed import undisturbed
from trainmark.execute.protocol import answers
from trainmark.measure.host import usable_core_numbers
from trainmark.measure.sampler import Row, Sampler, load_between
from trainmark.record.record import Outcome, Peaks, Record, Status
from trainmark.record.store import Store

_NO_ROOM = (
    *("out of memory", "resource_exhausted", "busy or unavailable", "sigkill", "cannot allocate memory"),
    "resource temporarily unavailable",
)
"""Parts of error messages, in lower case, that mean that there is no memory or device left for another process."""


class RunStopped(Exception):
    """Raised by an observer to end the current run and keep its results so far.

    Args:
        reason: reason for the record.
    """


class Observer:
    """Observes runs; override the methods you need. They are called in the parent, between the child's messages, so
    they don't affect the child's timing. Several tasks may be alive at once."""

    def task_started(self, task: Task[Any]) -> None:
        """A process starts."""

    def run_started(self, task: Task[Any], run: Run | CommandRun, replayed: bool) -> None:
        """The process starts a run; a replayed one leaves no record."""

    def heard(self, task: Task[Any], answer: answers.Answer) -> None:
        """The process has sent an answer about the run."""

    def counted(self, task: Task[Any], steps: int) -> None:
        """The process has done this many steps; called a few times a second while it computes. May raise
        :class:`RunStopped`."""

    def sampled(self, task: Task[Any], rows: Sequence[Row], gpu: int | None) -> None:
        """The process was sampled from outside: the newest rows, the last one from now, and the GPU it trains on."""

    def recorded(self, task: Task[Any], record: Record) -> None:
        """A record was written."""

    def task_ended(self, task: Task[Any]) -> None:
        """The process has ended."""


def execute(
    tasks: Sequence[Task[AnyRun]],
    seen: Mapping[tuple[str, str], Seen],
    store: Store,
    observer: Observer,
    here: Callable[[], Here] = look_around,
    sampler: Callable[[], Sampler] = Sampler,
    peaks: Mapping[Key, Peaks] | None = None,
    apart: list[object] | None = None,
) -> list[Record]:
    """Run ``tasks`` in order; those of one round are interleaved.

    If there is no room for all of them, they run one after the other, and so do those of later rounds.

    Args:
        seen: what each backend supports, by (backend, interpreter label); not needed for commands.
        store: where the records are written.
        observer: notified of all events.
        here: reads the machine's state before each round.
        sampler: makes the sampler of a process.
        peaks: measured peaks of the sides.
        apart: courses and commands whose sides don't fit together; further ones found are added.

    Returns:
        The records, in the order in which the runs ended. After KeyboardInterrupt the current runs are recorded as
        interrupted before the exception is passed on.
    """
    records: list[Record] = []

    apart = [] if apart is None else apart

    def conversation(task: Task[Any], machine: Here) -> _Conversation:
        builders = partial(_builders, task, machine, seen, peaks or {})
        return _Conversation(task, builders, store, observer, sampler(), records)

    for subject, tasks_of_round in parties(tasks):
        machine = here()
        left = [conversation(task, machine) for task in tasks_of_round]
        if left[0].begins_alone or subject in apart:
            left = left[:: -1 if tasks_of_round[0].round % 2 else 1]
        if len(left) > 1 and subject not in apart:
            _run_together(left, _turns(left))
            left = [conversation(each.task, machine) for each in left if each.crowded_out]
            apart += [subject] if left else []
        for each in left:
            each.is_apart = subject in apart
            _run_together([each], _turns([each], alone=True) if each.is_apart or each.run.blocks is not None else None)
    return records


def _builders(
    task: Task[Any], here: Here, seen: Mapping[tuple[str, str], Seen], peaks: Mapping[Key, Peaks]
) -> list[RecordBuilder]:
    """Return a builder for each run of ``task``."""
    token = secrets.token_hex(4)
    first: Run | CommandRun = task.first
    if isinstance(first, CommandRun):
        return [CommandRecordBuilder(first, here, token)]
    side = first.side
    peak, of_side = peaks.get((side, first.settings.threads)), seen[side.backend, side.interpreter.label]
    if first.spread is not None and first.spread.launched:
        return [RanksRecordBuilder(first, of_side, here, peak, token)]
    return [TrainingRecordBuilder(run, of_side, here, peak, bool(task.done), token) for run in task.runs]


def _run_together(conversations: Sequence[_Conversation], turns: Turns[_Conversation] | None) -> None:
    """Start the processes of all, and listen until all have ended.

    Args:
        turns: their turns; None for a single one, which never pauses.
    """
    ears, coming = Ears(), list(conversations)
    live: list[_Conversation] = []
    try:
        while coming or live:
            while coming and (turns is None or not coming[0].begins_alone or all(map(turns.pauses, live))):
                coming[0].prepare(turns)
                live.append(coming.pop(0))  # from now on it leaves a record, whatever happens
                live[-1].begin()
            live = [conversation for conversation in live if not conversation.over]  # without failed starts
            heard = ears.wait([conversation.worker for conversation in live])
            shown = (turns and turns.holder) or (live[-1] if live else None)
            looks = ears.is_time_to_look()
            for conversation in live:
                conversation.attend(heard[conversation.worker], looks=looks and conversation is shown)
            live = [conversation for conversation in live if not conversation.over]
            if turns is not None and (turn := turns.next()) is not None:
                turn.player.take(turn, [each for each in live if each is not turn.player])
    except KeyboardInterrupt:
        for conversation in live:
            if not conversation.over:
                conversation.break_off(Outcome("interrupted", "Ctrl-C or SIGTERM"))
        raise
    finally:
        for conversation in conversations:
            conversation.close()


def _turns(players: list[_Conversation], *, alone: bool = False) -> Turns[_Conversation]:
    """Return the turns of a round; longer ones with a GPU, whose clock drops while the CPU computes."""
    on_gpus = [each for each in players if each.run.side.device not in ("cpu", None)]
    seconds = GPU_SLICE_SECONDS if on_gpus else SLICE_SECONDS
    ramp = on_gpus if len(on_gpus) < len(players) else []
    return Turns(players, players[0].run.blocks, alone=alone, slice_seconds=seconds, ramp=ramp)


class _Conversation:
    """One task: its process, and the record builders of its runs.

    Attributes:
        over: whether its process has ended.
        crowded_out: whether it ended before training because memory or the device was taken; it then has no record.
        is_apart: whether the other sides of its round run at other times.
    """

    def __init__(
        self,
        task: Task[Any],
        builders: Callable[[], Sequence[RecordBuilder]],
        store: Store,
        observer: Observer,
        sampler: Sampler,
        records: list[Record],
    ) -> None:
        self.task, self._store, self._observer, self._records = task, store, observer, records
        self.run: Run | CommandRun = task.first
        self._sampler, self._make_builders = sampler, builders
        self._builders: Sequence[RecordBuilder] = ()
        self._stack = contextlib.ExitStack()
        self._turns: Turns[_Conversation] | None = None
        self._turn: Turn[_Conversation] | None = None
        self._before: Row | None = None
        self._idle: Sequence[_Conversation] = ()
        self._idle_before: float | None = None
        self._index = 0
        self._end: answers.Failed | answers.Diverged | None = None
        self.over = self.crowded_out = self.is_apart = False

    @property
    def begins_alone(self) -> bool:
        """Whether it computes before it can wait for a turn, so that no other may compute meanwhile.

        Experiments on a script that is known to wait after its first step start together, since nothing is timed yet.
        """
        return isinstance(self.run, CommandRun) and not self.run.is_experiment

    @property
    def _current(self) -> RecordBuilder:
        return self._builders[self._index]

    @property
    def _all_written(self) -> bool:
        return self._index == len(self._builders)

    def prepare(self, turns: Turns[_Conversation] | None) -> None:
        """Prepare the worker and the record builders.

        Args:
            turns: the turns it takes part in; None if it is alone.
        """
        self._turns, run = turns, self.run
        self._builders = self._make_builders()
        files: list[Path | None] = [
            builder.weights_file(self._store.folder)
            if run.settings.save_weights and index not in self.task.done
            else None
            for index, builder in enumerate(self._builders)
        ]
        request = partial(run.request, weight_files=files, in_turns=turns is not None)
        settings = run.settings
        self.worker = Worker(run.python, request, hear=self._hear, threads=settings.threads, timeout=settings.timeout)
        self._observer.task_started(self.task)
        self._announce()

    def begin(self) -> None:
        """Start the process."""
        try:
            self._stack.enter_context(self.worker)
        except OSError as error:  # the interpreter was removed, or the system's process limit is reached
            self.break_off(Outcome("failed", f"the process can't be started: {error}"))
        else:
            self._sampler.watch(self.worker.pid)

    def attend(self, ready: list[Source], *, looks: bool) -> None:
        """Handle what has arrived, and sample the process if ``looks``."""
        try:
            ending = self.worker.attend(ready)
            if looks and ending is None:
                self._look()
        except RunStopped as stopped:
            self.break_off(Outcome("ok", str(stopped)))
        except ProtocolError as error:
            self.break_off(Outcome("failed", str(error)))
        else:
            if ending is not None:
                self.break_off(_outcome(ending, self._end))

    def take(self, turn: Turn[_Conversation], idle: Sequence[_Conversation]) -> None:
        """Start its turn.

        Args:
            idle: the other sides, which are paused.
        """
        self._turn, self._idle, self._idle_before = turn, idle, _cpu_seconds(idle)
        self._before = self._sampler.look_now()
        self.worker.send(turn.message)

    @property
    def threads(self) -> int | None:
        """Number of CPU threads that it may use, over all its ranks here; None is all."""
        ranks = self.run.spread.ranks_here if isinstance(self.run, Run) and self.run.spread else 1
        return self.run.settings.threads and self.run.settings.threads * ranks

    def break_off(self, outcome: Outcome) -> None:
        """End the process, and record the current run with this outcome."""
        self.close()
        self.crowded_out = self._lacks_room(outcome)
        if not self._all_written and not self.crowded_out:
            self._write(outcome)
        self.over = True  # not before, or an interruption would cost the record; nor later, since a turn is left once
        if self._turns is not None:
            self._turns.leaves(self)
        self._observer.task_ended(self.task)

    def _lacks_room(self, outcome: Outcome) -> bool:
        """Return whether it ended like this because the other sides of its round took the memory or the device."""
        shares = self._turns is not None and self._turns.has_company(self, begun=not self.begins_alone)
        if outcome.status != "failed" or not shares or self._index or self._current.epochs or self._current.slices:
            return False
        return any(sign in (outcome.reason or "").lower() for sign in _NO_ROOM)

    def close(self) -> None:
        """End the process."""
        self._stack.close()

    def _look(self) -> None:
        self._sampler.look()
        if not self._all_written:
            self._observer.sampled(self.task, self._sampler.latest, self._current.gpu)
            self._observer.counted(self.task, self.worker.steps())

    def _hear(self, answer: answers.Answer) -> None:
        match answer:
            case answers.Failed() | answers.Diverged():
                self._end = answer
            case answers.CommandStarted():  # sample the command, not the worker that starts it
                self._sampler.watch(answer.pid)
            case answers.Waiting() if self._turns is not None:
                self._turn = None
                self._turns.waits(self, settled=answer.settled)
        if self._all_written:
            return
        self._current.hear(answer)
        match answer:
            case answers.SliceTimed():
                self._keep(answer)
            case answers.EpochEnded():
                self._current.hold_memory(self._sampler.proportional_bytes(self._current.rest_seconds))
        self._observer.heard(self.task, answer)
        if isinstance(answer, answers.Finished):
            self._write(Outcome("ok"))

    def _keep(self, timed: answers.SliceTimed) -> None:
        """Keep a slice, unless it belongs to no block."""
        turn, before = self._turn, self._before
        if turn is None or turn.block is None or before is None or self._turns is None:
            return
        after, idle = self._sampler.look_now(), _cpu_seconds(self._idle)
        idle = max(idle - self._idle_before, 0.0) if idle is not None and self._idle_before is not None else 0.0
        threads = [each.threads for each in (self, *self._idle)]
        used = None if None in threads else max(filter(None, threads), default=None)
        load = load_between(before, after, usable_core_numbers(), used, idle)
        self._turns.timed(self._current.add_slice(timed, turn.block, turn.order, load))

    def _write(self, outcome: Outcome) -> None:
        """Record the current run, unless its record exists, and continue with the next."""
        builder = self._current
        builder.alone = self.is_apart
        samples = self._sampler.take(self.worker.origin)
        with undisturbed():
            if self._index not in self.task.done:
                records = builder.records(outcome, samples)
                self._store.write_all(records)
                self._records += records
                self._observer.recorded(self.task, self._records[-1])
            self._index += 1
        if outcome.status == "ok" and not self._all_written:
            self._current.continue_from(builder)
            self._announce()

    def _announce(self) -> None:
        self._observer.run_started(self.task, self._current.run, self._index in self.task.done)


def _cpu_seconds(conversations: Iterable[_Conversation]) -> float | None:
    """Return the CPU time of all their processes and descendants; None if one can't be read."""
    used = [each._sampler.cpu_seconds() for each in conversations]
    return None if None in used else sum(filter(None, used))


def _outcome(ending: Ending, said: answers.Failed | answers.Diverged | None) -> Outcome:
    """Return the outcome of a run that did not finish."""
    if isinstance(said, answers.Diverged):
        return Outcome("diverged", said.reason, step=said.step, loss_before=said.before)
    status: Status = "timeout" if ending.status == "timeout" else "failed"
    reason = said.reason if said is not None else ending.reason
    return Outcome(status, reason or "the process ended early", stderr_tail=ending.tail or None)
