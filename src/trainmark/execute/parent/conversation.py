"""One process of a round: the messages to it, its answers, and the records of its runs."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from trainmark.errors import ProtocolError
from trainmark.execute.parent.advice import with_advice
from trainmark.execute.parent.command import CommandRun
from trainmark.execute.parent.peaks import PeakKey
from trainmark.execute.parent.plan import Run
from trainmark.execute.parent.process import Ending, Source, Worker
from trainmark.execute.parent.record_builder import RecordBuilder, ThreadsByTitle
from trainmark.execute.parent.task import Task
from trainmark.execute.parent.time_limit import NO_LIMIT, TimeLimit
from trainmark.execute.parent.turns import GPU_SLICE_SECONDS, SLICE_SECONDS, Tempo, Turn, Turns
from trainmark.execute.parent.undisturbed import undisturbed
from trainmark.execute.protocol import answers
from trainmark.execute.protocol.worker_commands import StartTraining, TakeTurn
from trainmark.measure.host import usable_core_numbers
from trainmark.measure.sampler import Row, Sampler, load_between
from trainmark.record.record import Outcome, Peaks, Record, Status, ThreadsSearch
from trainmark.record.store import Store

RAMP_SECONDS = 0.25
"""Untimed seconds before a slice on a GPU whose clock has dropped while the CPU computed."""
CLOCK_IS_UP = 0.9
"""A GPU's clock counts as dropped below this share of the highest clock seen after a slice. The
clock varies by a few percent while the GPU computes, and falls to a fifth within a second of
idleness."""

_NO_ROOM = (
    *(
        "out of memory",
        "resource_exhausted",
        "busy or unavailable",
        "sigkill",
        "cannot allocate memory",
    ),
    "resource temporarily unavailable",
)
"""Parts of error messages, in lower case, that mean that there is no memory or device left for
another process."""


class RunStopped(Exception):
    """Raised by an observer to end the current run and keep its results so far.

    Args:
        reason: reason for the record.
    """


class RunObserver:
    """Observes runs; override the methods you need.

    They are called in the parent, between the child's messages, so they don't affect the child's
    timing. Several tasks may be alive at once.
    """

    def task_started(self, task: Task[Any]) -> None:
        """A process starts."""

    def run_started(self, task: Task[Any], run: Run | CommandRun, replayed: bool) -> None:
        """The process starts a run; a replayed one leaves no record."""

    def answered(self, task: Task[Any], answer: answers.Answer) -> None:
        """The process has sent an answer about the run."""

    def counted(self, task: Task[Any], steps: int) -> None:
        """The process has done this many steps; called a few times a second while it computes.

        May raise :class:`RunStopped`.
        """

    def sampled(self, task: Task[Any], rows: Sequence[Row], gpu: int | None) -> None:
        """The process was sampled from outside.

        Gets the newest rows, the last one from now, and the GPU it trains on.
        """

    def recorded(self, task: Task[Any], record: Record) -> None:
        """A record was written."""

    def task_ended(self, task: Task[Any]) -> None:
        """The process has ended."""


def candidates(cores: int) -> tuple[int, ...]:
    """Return the numbers of threads to try on this many cores: 1, 2, 4, ..., and all of them."""
    powers = {1 << exponent for exponent in range(cores.bit_length())}
    return tuple(sorted({*powers, cores}))


class GpuClocks:
    """The highest clock of each GPU that was read right after a slice."""

    def __init__(self) -> None:
        self._highest: dict[int, float] = {}

    def saw(self, gpu: int, hertz: float) -> None:
        """Remember the clock of a GPU that has just computed."""
        self._highest[gpu] = max(hertz, self._highest.get(gpu, 0.0))

    def is_down(self, gpu: int, hertz: float) -> bool | None:
        """Return whether a clock is lower than while the GPU computes.

        The result is None if that is not known yet.
        """
        highest = self._highest.get(gpu)
        return None if highest is None else hertz < CLOCK_IS_UP * highest


@dataclass(frozen=True)
class Findings:
    """What is found out while processes run, shared by all of them.

    Args:
        peaks: measured peaks of the sides.
        threads: best numbers of CPU threads of the sides; None if a search had no result; it is not
            repeated.
        clocks: highest clocks of the GPUs.
    """

    peaks: Mapping[PeakKey, Peaks] = field(default_factory=dict)
    threads: ThreadsByTitle = field(default_factory=dict)
    clocks: GpuClocks = field(default_factory=GpuClocks)


class OfConversations(Tempo["Conversation"]):
    """Where conversations compute, and how long their slices are: longer on a GPU."""

    def device(self, player: Conversation) -> str:
        """Return the device, as far as known; commands without one count as on the CPU."""
        return player.run.side.device or "cpu"

    def slice_seconds(self, player: Conversation) -> float:
        """Return the length of the first slices."""
        return GPU_SLICE_SECONDS if player.is_on_gpu else SLICE_SECONDS


class Conversation:
    """One task: its process, and the record builders of its runs.

    Attributes:
        over: whether its process has ended.
        has_failed: whether one of its runs did not end as planned, as its record says.
        crowded_out: whether it ended because other sides took the memory or the device; that is not
            recorded, and it runs again.
        is_apart: whether the other sides of its round run at other times.
    """

    def __init__(
        self,
        task: Task[Any],
        builders: Callable[[], Sequence[RecordBuilder]],
        store: Store,
        observer: RunObserver,
        sampler: Sampler,
        records: list[Record],
        findings: Findings | None = None,
        limit: TimeLimit = NO_LIMIT,
    ) -> None:
        self.task = task
        self._limit = limit
        self._at_work_since = 0.0
        self._store = store
        self._observer = observer
        self._records = records
        self.run: Run | CommandRun = task.first
        self._sampler = sampler
        self._make_builders = builders
        self._findings = findings or Findings()
        self._opening: Record | None = None
        self._steps_before_training = 0
        self._builders: Sequence[RecordBuilder] = ()
        self._stack = contextlib.ExitStack()
        self._turns: Turns[Conversation] | None = None
        self._turn: Turn[Conversation] | None = None
        self._before: Row | None = None
        self._idle: Sequence[Conversation] = ()
        self._idle_before: float | None = None
        self._index = 0
        self._end: answers.Failed | answers.Diverged | None = None
        self._tries_threads = False
        self.over = self.has_failed = self.crowded_out = self.is_apart = False

    @property
    def begins_alone(self) -> bool:
        """Whether it computes before it can wait for a turn.

        No other process may compute meanwhile.

        Experiments on a script that is known to wait after its first step start together, since
        nothing is timed yet.
        """
        return isinstance(self.run, CommandRun) and not self.run.is_experiment

    @property
    def is_on_gpu(self) -> bool:
        """Whether it was given another device than the CPU."""
        return self.run.side.device not in ("cpu", None)

    @property
    def has_opened(self) -> bool:
        """Whether it has timed slices."""
        return bool(self._builders) and bool(self._builders[0].slices)

    @property
    def resident_bytes(self) -> int | None:
        """Memory that its processes use now; None if unknown."""
        tree = self._sampler.latest[-1].tree if self._sampler.latest else None
        return None if tree is None else tree.resident_bytes

    @property
    def _current(self) -> RecordBuilder:
        return self._builders[self._index]

    @property
    def _all_written(self) -> bool:
        return self._index == len(self._builders)

    def prepare(self, turns: Turns[Conversation] | None) -> None:
        """Prepare the worker and the record builders.

        Args:
            turns: the turns it takes part in; None if it is alone.
        """
        self._turns = turns
        run = self.run
        self._builders = self._make_builders()
        files: list[Path | None] = []
        for index, builder in enumerate(self._builders):
            saves = run.settings.save_weights and index not in self.task.done
            files.append(builder.weights_file(self._store.folder) if saves else None)
        opens = turns is not None and turns.has_opening
        request = partial(
            run.request,
            weight_files=files,
            in_turns=turns is not None,
            slices_first=opens,
            ends_at=self._limit.training_ends_at,
        )
        threads = run.threads if isinstance(run, Run) else run.settings.threads
        self.worker = Worker(
            run.python,
            request,
            on_answer=self._on_answer,
            threads=threads,
            timeout=run.settings.timeout,
            on_output=self._on_output,
        )
        self._observer.task_started(self.task)
        self._announce()

    def begin(self) -> None:
        """Start the process."""
        self._at_work_since = self._limit.clock()
        try:
            self._stack.enter_context(self.worker)
        except OSError as error:
            # The interpreter was removed, or the system's process limit is reached.
            self.break_off(Outcome("failed", f"the process can't be started: {error}"))
        else:
            self._sampler.watch(self.worker.pid)

    def attend(self, ready: list[Source], *, takes_sample: bool) -> None:
        """Handle what has arrived, and sample the process if ``takes_sample``."""
        try:
            ending = self.worker.attend(ready)
            if takes_sample and ending is None:
                self._look()
        except RunStopped as stopped:
            self.break_off(Outcome("ok", str(stopped)))
        except ProtocolError as error:
            self.break_off(Outcome("failed", str(error)))
        else:
            if ending is not None:
                self.break_off(_outcome(ending, self._end))

    def take(self, turn: Turn[Conversation], idle: Sequence[Conversation]) -> None:
        """Start its turn.

        Args:
            idle: the other sides, which are paused.
        """
        self._turn = turn
        self._at_work_since = self._limit.clock()
        self._idle = idle
        self._idle_before = _cpu_seconds(idle)
        self._before = self._sampler.look_now()
        message = turn.message
        if isinstance(message, StartTraining):
            self._steps_before_training = self.worker.steps()
        elif isinstance(message, TakeTurn) and turn.block is not None and self._needs_ramp(turn):
            message = self._with_ramp(message)
        elif isinstance(message, TakeTurn) and turn.block is None and message.seconds is not None:
            message = dataclasses.replace(message, threads=self._threads_to_try())
            self._tries_threads = len(message.threads) > 1
        if isinstance(message, TakeTurn) and isinstance(self.run, CommandRun):
            message = dataclasses.replace(message, steps_a_second=self.run.steps_a_second)
        self.worker.send(message)

    def _with_ramp(self, message: TakeTurn) -> TakeTurn:
        """Add untimed steps in which the clock rises.

        A command can't detect a steady clock, so it gets more steps.
        """
        if isinstance(self.run, CommandRun):
            return dataclasses.replace(message, untimed=GPU_SLICE_SECONDS)
        return dataclasses.replace(message, untimed=RAMP_SECONDS, until_steady=True)

    def _threads_to_try(self) -> tuple[int, ...]:
        """Return the numbers of threads to try in its first turn.

        It is one number if the best is known, and none if it is fixed.
        """
        run = self.run
        if not run.next_to_accelerator:
            return ()
        if run.title not in self._findings.threads:
            return candidates(len(usable_core_numbers()))
        known = self._findings.threads[run.title]
        return () if known is None else (known.chosen,)

    def _keep_threads(self, tried: answers.ThreadsTried) -> None:
        """Keep the best number of threads for the other processes of its side.

        The first one has tried them all.
        """
        run = self.run
        if self._tries_threads and run.title not in self._findings.threads:
            step_seconds = {str(number): seconds for number, seconds in tried.tried}
            self._findings.threads[run.title] = ThreadsSearch(
                tried.chosen, tried.default, step_seconds
            )

    def _keep_failed_search(self) -> None:
        """Remember that it could not find its best number of threads.

        If its other processes tried again and succeeded, its rounds would differ in their number of
        threads.
        """
        if self._tries_threads:
            self._findings.threads.setdefault(self.run.title, None)

    def _needs_ramp(self, turn: Turn[Conversation]) -> bool:
        """Return whether its GPU's clock must rise first.

        If the clock is unknown, it must if another device has computed.
        """
        if not self.is_on_gpu:
            return False
        is_down = None
        hertz = self._hertz(self._before)
        if hertz is not None and self._current.gpu is not None:
            is_down = self._findings.clocks.is_down(self._current.gpu, hertz)
        if is_down is not None:
            return is_down
        return turn.follows is not None and turn.follows.run.side.device != self.run.side.device

    def _hertz(self, row: Row | None) -> float | None:
        """Return the clock of its GPU in a row; None if it was not read."""
        gpu = self._current.gpu
        if row is None or gpu is None or gpu >= len(row.gpus):
            return None
        return row.gpus[gpu].sm_hertz

    def keep_opening(self) -> Record | None:
        """Write a record of the slices so far, which a later record of the same run replaces.

        Without slices, nothing is written, and the result is None.

        The verdict on speed is kept even if the rest of the run fails.
        """
        if self.over or self._all_written or not self._current.slices:
            return None
        with undisturbed():
            self._current.take_findings(self._findings.peaks, self._findings.threads)
            record = self._current.record(Outcome("ok"))
            self._store.write_all([record])
            self._records.append(record)
            self._opening = record
        self._observer.recorded(self.task, record)
        return record

    def abandon(self, turns: Turns[Conversation], *, runs_again: bool = True) -> None:
        """End its process without a record of what it did since its opening.

        It may not have been started.
        """
        self.close()
        self.crowded_out = runs_again
        self.over = True
        turns.leaves(self)
        if self._builders:
            self._observer.task_ended(self.task)

    @property
    def threads(self) -> int | None:
        """Number of CPU threads that it may use, over all its ranks here; None is all."""
        known = self._findings.threads.get(self.run.title)
        return self.run.threads_here(known.chosen if known else None)

    @property
    def is_late(self) -> bool:
        """Whether it starts or computes for longer than the others of its round may wait."""
        return self._limit.clock() - self._at_work_since > self._limit.patience

    def hang_up(self) -> None:
        """Ask its process to end, without waiting for it."""
        self.worker.hang_up()

    def cut_short(self, reason: str) -> None:
        """End its process before its time, and keep what it has reported.

        Without results, the record says so; a further round then leaves no record.
        """
        has_results = not self._all_written and self._current.has_results
        is_experiment = isinstance(self.run, CommandRun) and self.run.is_experiment
        if has_results:
            self.break_off(Outcome("ok", reason))
        elif self.run.round == 0 or is_experiment or self._turns is None:
            self.break_off(Outcome("timeout", reason))
        else:
            self.abandon(self._turns, runs_again=False)

    def break_off(self, outcome: Outcome) -> None:
        """End the process, and record the current run with this outcome."""
        self.close()
        self.crowded_out = self._lacks_room(outcome)
        if not self._all_written and not self.crowded_out:
            self._write(outcome)
            self.has_failed = outcome.status != "ok"
        # This is set only after the record is written, and before leaving the turns, which happens
        # once.
        self.over = True
        if self._turns is not None:
            self._turns.leaves(self)
        self._observer.task_ended(self.task)

    def _lacks_room(self, outcome: Outcome) -> bool:
        """Return whether it ended like this because other sides took the memory or the device.

        A process with results already had enough room, so this holds only if processes of another
        round are alive.
        """
        if outcome.status != "failed" or self._turns is None or self._index:
            return False
        has_results = bool(self._current.epochs or self._current.slices)
        if has_results:
            shares = self._turns.has_other_round(self)
        else:
            shares = self._turns.has_company(self, begun=not self.begins_alone)
        return shares and any(sign in (outcome.reason or "").lower() for sign in _NO_ROOM)

    def close(self) -> None:
        """End the process."""
        self._stack.close()

    def _look(self) -> None:
        self._sampler.sample()
        if not self._all_written:
            self._observer.sampled(self.task, self._sampler.latest, self._current.gpu)
            self._observer.counted(self.task, self.worker.steps() - self._steps_before_training)

    def _on_output(self, printed: bytes) -> None:
        if not self._all_written:
            self._current.on_output(printed)

    def _on_answer(self, answer: answers.Answer) -> None:
        match answer:
            case answers.Failed() | answers.Diverged():
                self._end = answer
            case answers.CommandExited():
                self.worker.read_printed()
            case answers.CommandStarted():  # sample the command, not the worker that starts it
                self._sampler.watch(answer.pid)
            case answers.ThreadsTried():
                self._keep_threads(answer)
            case answers.Waiting() if self._turns is not None:
                self._turn = None
                self._keep_failed_search()
                self._turns.waits(self, settled=answer.settled)
        if self._all_written:
            return
        self._current.on_answer(answer)
        match answer:
            case answers.SliceTimed():
                self._keep(answer)
            case answers.EpochEnded():
                self._current.hold_memory(
                    self._sampler.proportional_bytes(self._current.rest_seconds)
                )
        self._observer.answered(self.task, answer)
        if isinstance(answer, answers.Finished):
            self._write(self._outcome_of(answer))

    def _outcome_of(self, finished: answers.Finished) -> Outcome:
        """Return how a run ended that the process has finished."""
        if not finished.shortened:
            return Outcome("ok")
        return Outcome("ok" if self._current.has_results else "timeout", self._limit.reason)

    def _keep(self, timed: answers.SliceTimed) -> None:
        """Keep a slice, unless it belongs to no block."""
        turn = self._turn
        before = self._before
        if turn is None or turn.block is None or before is None or self._turns is None:
            return
        after = self._sampler.look_now()
        idle_now = _cpu_seconds(self._idle)
        if idle_now is None or self._idle_before is None:
            idle = 0.0
        else:
            idle = max(idle_now - self._idle_before, 0.0)
        threads = [each.threads for each in (self, *self._idle)]
        used = None if None in threads else max(filter(None, threads), default=None)
        load = load_between(before, after, usable_core_numbers(), used, idle)
        hertz = self._hertz(after)
        if hertz is not None and self._current.gpu is not None:
            self._findings.clocks.saw(self._current.gpu, hertz)
        self._turns.timed(self, self._current.add_slice(timed, turn.block, turn.order, load))

    def _write(self, outcome: Outcome) -> None:
        """Record the current run, unless its record exists, and continue with the next."""
        builder = self._current
        builder.alone = self.is_apart
        if outcome.status == "ok":
            self._keep_failed_search()
        builder.take_findings(self._findings.peaks, self._findings.threads)
        if self._opening is not None and outcome.status != "ok":
            builder.leave_slices()
        samples = self._sampler.take(self.worker.origin)
        with undisturbed():
            is_empty = outcome.status == "ok" and not (builder.epochs or builder.slices)
            never_began = is_empty and self._turns is not None and self._turns.has_opening
            leaves_nothing = never_began and isinstance(self.run, Run)
            if self._index not in self.task.done and not leaves_nothing:
                records = builder.records(outcome, samples)
                continued = self._opening.id if self._opening else None
                self._store.write_all(records, continued=continued)
                self._replace_opening(records)
                self._records += records
                self._observer.recorded(self.task, self._records[-1])
            self._index += 1
        if outcome.status == "ok" and not self._all_written:
            self._current.continue_from(builder)
            self._announce()

    def _replace_opening(self, records: Sequence[Record]) -> None:
        """Forget the record of the opening if ``records`` have replaced it."""
        ids = {record.id for record in records}
        if self._opening is not None and self._opening.id in ids:
            self._records.remove(self._opening)

    def _announce(self) -> None:
        self._observer.run_started(self.task, self._current.run, self._index in self.task.done)


def _cpu_seconds(conversations: Iterable[Conversation]) -> float | None:
    """Return the CPU time of all their processes and descendants; None if one can't be read."""
    used = [each._sampler.cpu_seconds() for each in conversations]
    return None if None in used else sum(filter(None, used))


def _outcome(ending: Ending, last_answer: answers.Failed | answers.Diverged | None) -> Outcome:
    """Return the outcome of a run that did not finish."""
    if isinstance(last_answer, answers.Diverged):
        return Outcome(
            "diverged", last_answer.reason, step=last_answer.step, loss_before=last_answer.before
        )
    status: Status = "timeout" if ending.status == "timeout" else "failed"
    reason = last_answer.reason if last_answer is not None else ending.reason
    return Outcome(
        status, with_advice(reason or "the process ended early"), stderr_tail=ending.tail or None
    )
