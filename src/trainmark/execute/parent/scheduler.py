"""Runs the tasks, round by round, and writes a record of every started run, however it ended."""

from __future__ import annotations

import dataclasses
import itertools
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from trainmark.execute.parent.command import CommandRun
from trainmark.execute.parent.command_record import CommandRecordBuilder
from trainmark.execute.parent.conversation import (
    Conversation,
    Findings,
    OfConversations,
    RunObserver,
    RunStopped,
)
from trainmark.execute.parent.machine_state import MachineState, read_machine_state
from trainmark.execute.parent.opening import OpeningListener, OpeningUmpire, has_room
from trainmark.execute.parent.peaks import PeakKey
from trainmark.execute.parent.plan import Run
from trainmark.execute.parent.probe import Seen
from trainmark.execute.parent.process import Listener
from trainmark.execute.parent.ranks_record import RanksRecordBuilder
from trainmark.execute.parent.record_builder import RecordBuilder, ThreadsByTitle
from trainmark.execute.parent.task import AnyRun, Task, parties
from trainmark.execute.parent.time_limit import NO_LIMIT, TimeLimit
from trainmark.execute.parent.training_record import TrainingRecordBuilder
from trainmark.execute.parent.turns import Round, Turns
from trainmark.measure.sampler import Sampler
from trainmark.record.record import Outcome, Peaks, Record
from trainmark.record.store import Store

__all__ = ["RunObserver", "RunStopped", "RunsInterrupted", "execute"]


class RunsInterrupted(KeyboardInterrupt):
    """Raised by :func:`execute` after Ctrl-C, when the current runs have been recorded.

    Args:
        records: the records of all runs so far.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        super().__init__()
        self.records = records


@dataclass
class _Execution:
    """What all processes of a call of :func:`execute` share; see its arguments."""

    seen: Mapping[tuple[str, str], Seen]
    store: Store
    observer: RunObserver
    sampler: Callable[[], Sampler]
    findings: Findings
    limit: TimeLimit
    records: list[Record] = field(default_factory=list)

    def conversation(self, task: Task[Any], machine: MachineState) -> Conversation:
        """Prepare the process of a task, without starting it."""
        task = _with_best_threads(task, self.findings)
        builders = partial(_builders, task, machine, self.seen, self.findings.peaks)
        return Conversation(
            task,
            builders,
            self.store,
            self.observer,
            self.sampler(),
            self.records,
            self.findings,
            self.limit,
        )


def execute(
    tasks: Sequence[Task[AnyRun]],
    seen: Mapping[tuple[str, str], Seen],
    store: Store,
    observer: RunObserver,
    read_state: Callable[[], MachineState] = read_machine_state,
    sampler: Callable[[], Sampler] = Sampler,
    peaks: Mapping[PeakKey, Peaks] | None = None,
    apart: list[object] | None = None,
    opening: OpeningListener | None = None,
    threads: ThreadsByTitle | None = None,
    goes_on: bool = True,
    limit: TimeLimit = NO_LIMIT,
) -> list[Record]:
    """Run ``tasks`` in order; those of one round are interleaved.

    If there is no room for all of them, they run one after the other, and so do those of later
    rounds.

    Args:
        seen: what each backend supports, by (backend, interpreter label); not needed for commands.
        store: where the records are written.
        observer: notified of all events.
        read_state: reads the machine's state before each round.
        sampler: makes the sampler of a process.
        peaks: measured peaks of the sides, which may be added while tasks run.
        apart: workloads and commands whose sides don't fit together; further ones found are added.
        opening: if given, all rounds of ``tasks``, which have one subject, start together, and this
            listener decides after a few blocks of each. Rounds that don't fit into memory together
            run one after the other without it.
        threads: best numbers of CPU threads of the sides, None if a search had no result; further
            ones are added.
        goes_on: whether the later rounds of an opening start and continue even if a run of the
            first round has failed.
        limit: when everything has to end. Runs that still go on then are recorded as far as they
            are, and no others start.

    Returns:
        The records, in the order in which the runs ended.

    Raises:
        RunsInterrupted: after KeyboardInterrupt, when the current runs are recorded.
    """
    findings = Findings({} if peaks is None else peaks, {} if threads is None else threads)
    execution = _Execution(seen, store, observer, sampler, findings, limit)
    try:
        _execute(execution, tasks, read_state, [] if apart is None else apart, opening, goes_on)
    except KeyboardInterrupt:
        raise RunsInterrupted(execution.records) from None
    return execution.records


def _execute(
    execution: _Execution,
    tasks: Sequence[Task[AnyRun]],
    read_state: Callable[[], MachineState],
    apart: list[object],
    opening: OpeningListener | None,
    goes_on: bool,
) -> None:
    """Run the tasks, round by round; see :func:`execute`."""
    limit = execution.limit
    together = list(parties(tasks))
    if opening is not None and together[0][0] not in apart:
        rounds = [of_round for _, of_round in together]
        left = _open_rounds(execution, rounds, read_state(), opening, goes_on=goes_on)
        together = list(parties(left))
    for subject, tasks_of_round in together:
        if limit.is_reached:
            return
        machine = read_state()
        conversations = [execution.conversation(task, machine) for task in tasks_of_round]
        if conversations[0].begins_alone or subject in apart:
            conversations = conversations[:: -1 if tasks_of_round[0].round % 2 else 1]
        if len(conversations) > 1 and subject not in apart:
            _run_together(conversations, _turns(conversations, limit), limit)
            conversations = [
                execution.conversation(each.task, machine)
                for each in conversations
                if each.crowded_out
            ]
            apart += [subject] if conversations else []
        for each in conversations:
            each.is_apart = subject in apart
            in_blocks = (each.is_apart or each.run.blocks is not None) and not each.run.decided
            if not limit.is_reached:
                turns = _turns([each], limit, alone=True) if in_blocks else None
                _run_together([each], turns, limit)


def _open_rounds(
    execution: _Execution,
    rounds: Sequence[Sequence[Task[Any]]],
    machine: MachineState,
    listener: OpeningListener,
    *,
    goes_on: bool,
) -> list[Task[Any]]:
    """Run rounds that start together; returns the tasks for which there was no room."""
    conversations = [
        [execution.conversation(task, machine) for task in of_round] for of_round in rounds
    ]
    every = list(itertools.chain.from_iterable(conversations))
    if not has_room([], len(every)):
        return [each.task for each in every]
    turns = Turns(
        [Round(tuple(of_round), of_round[0].run.blocks) for of_round in conversations],
        tempo=OfConversations(),
        umpire=OpeningUmpire(every, listener),
        limit=execution.limit,
    )
    _run_together(every, turns, execution.limit, goes_on=goes_on)
    return _in_another_session([each.task for each in every if each.crowded_out])


def _in_another_session(tasks: Sequence[Task[Any]]) -> list[Task[Any]]:
    """Return ``tasks`` with a new session.

    It separates their rounds from those with slices already recorded.
    """
    session = secrets.token_hex(6)
    return [
        Task(tuple(dataclasses.replace(run, session=session) for run in task.runs), task.done)
        for task in tasks
    ]


def _with_best_threads(task: Task[Any], findings: Findings) -> Task[Any]:
    """Return the task with its best number of CPU threads, if that was found."""
    run = task.first
    if not isinstance(run, Run) or not run.next_to_accelerator:
        return task
    known = findings.threads.get(run.title)
    if known is None:
        return task
    return Task(
        tuple(dataclasses.replace(each, best_threads=known.chosen) for each in task.runs), task.done
    )


def _builders(
    task: Task[Any],
    state: MachineState,
    seen: Mapping[tuple[str, str], Seen],
    peaks: Mapping[PeakKey, Peaks],
) -> list[RecordBuilder]:
    """Return a builder for each run of ``task``."""
    token = secrets.token_hex(4)
    first: Run | CommandRun = task.first
    if isinstance(first, CommandRun):
        return [CommandRecordBuilder(first, state, token)]
    side = first.side
    peak = peaks.get((side, first.settings.threads))
    of_side = seen[side.backend, side.interpreter.label]
    if first.spread is not None and first.spread.launched:
        return [RanksRecordBuilder(first, of_side, state, peak, token)]
    return [
        TrainingRecordBuilder(run, of_side, state, peak, bool(task.done), token)
        for run in task.runs
    ]


def _run_together(
    conversations: Sequence[Conversation],
    turns: Turns[Conversation] | None,
    limit: TimeLimit,
    *,
    goes_on: bool = True,
) -> None:
    """Start the processes of all, and listen until all have ended or the time is over.

    Args:
        turns: their turns; None for a single one, which never pauses.
        limit: when all have to end.
        goes_on: whether later rounds continue even if a run of the first round has failed.
    """
    listener = Listener()
    coming = list(conversations)
    live: list[Conversation] = []
    try:
        while coming or live:
            while coming and _may_begin(coming[0], conversations, live, turns):
                coming[0].prepare(turns)
                live.append(coming.pop(0))  # from now on it leaves a record, whatever happens
                live[-1].begin()
            # A process that could not be started has ended its conversation already.
            live = [conversation for conversation in live if not conversation.over]
            received = listener.wait([conversation.worker for conversation in live])
            shown = (turns and turns.holder) or (live[-1] if live else None)
            takes_sample = listener.is_time_to_sample()
            for conversation in live:
                conversation.attend(
                    received[conversation.worker],
                    takes_sample=takes_sample and conversation is shown,
                )
            if turns is not None and turns.has_opening:
                coming = _make_room(conversations, coming, live, turns)
                if not goes_on:
                    coming = _skip_after_failure(conversations, coming, turns)
            coming = _keep_limit(coming, live, turns, limit)
            live = [conversation for conversation in live if not conversation.over]
            turn = turns.next() if turns is not None else None
            if turn is not None:
                turn.player.take(turn, [each for each in live if each is not turn.player])
    except KeyboardInterrupt as interrupt:
        going = [conversation for conversation in live if not conversation.over]
        for conversation in going:
            conversation.hang_up()
        for conversation in going:
            conversation.break_off(Outcome("interrupted", str(interrupt) or "Ctrl-C"))
        raise
    finally:
        for conversation in conversations:
            conversation.close()


def _keep_limit(
    coming: Sequence[Conversation],
    live: Sequence[Conversation],
    turns: Turns[Conversation] | None,
    limit: TimeLimit,
) -> list[Conversation]:
    """End everything once the time is over, and before then what the others wait for in vain.

    Returns the processes that are still to start.
    """
    if limit.is_reached:
        _cut_short(live, limit.reason)
        return []
    if turns is not None:
        waiting = [each for each in live if turns.pauses(each)]
        late = [each for each in live if not each.over and each not in waiting and each.is_late]
        if waiting:
            _cut_short(late, f"no answer for {limit.patience:.0f} s, so the others went on")
    return list(coming)


def _cut_short(conversations: Sequence[Conversation], reason: str) -> None:
    """End these processes together, and keep what they have reported."""
    going = [each for each in conversations if not each.over]
    for each in going:
        each.hang_up()
    for each in going:
        each.cut_short(reason)


def _may_begin(
    coming: Conversation,
    every: Sequence[Conversation],
    live: Sequence[Conversation],
    turns: Turns[Conversation] | None,
) -> bool:
    """Return whether a process may start now.

    A process that computes before it can wait for a turn starts only while the others wait. With an
    opening, the processes of the second round start together as soon as each side of the first
    round waits: then every side can.
    """
    if turns is None or not coming.begins_alone or not live:
        return True
    first = [each for each in every if each.task.round == every[0].task.round]
    if coming not in first and all(turns.pauses(each) for each in first):
        return True
    return all(turns.pauses(each) for each in live)


def _make_room(
    every: Sequence[Conversation],
    coming: Sequence[Conversation],
    live: Sequence[Conversation],
    turns: Turns[Conversation],
) -> list[Conversation]:
    """Stop running rounds together if memory does not suffice.

    Returns the processes that are still to start.

    A process that found too little memory, or that is about to start and would find too little,
    runs again later. So do all processes of the later rounds, which share the memory with the first
    round, and also the first round unless it already has slices.
    """
    crowded = [each for each in every if each.crowded_out]
    waiting = [each for each in live if turns.pauses(each)]
    if not crowded and not (coming and waiting and not has_room(waiting, len(coming))):
        return list(coming)
    first = every[0].task.round
    has_opened = any(each.has_opened for each in every if each.task.round == first)
    for each in every:
        if not each.over and (each.task.round != first or not has_opened):
            each.abandon(turns)
    return []


def _skip_after_failure(
    every: Sequence[Conversation], coming: Sequence[Conversation], turns: Turns[Conversation]
) -> list[Conversation]:
    """Skip later rounds after a failure in the first one.

    Returns the processes that are still to start.

    No further process of a later round starts, and running processes of the failed sides end. The
    other processes of later rounds also end, unless two sides are left to compare.
    """
    first = [each for each in every if each.task.round == every[0].task.round]
    failed = {each.task.first.title for each in first if each.has_failed}
    if not failed:
        return list(coming)
    has_pair = len({each.task.first.title for each in first} - failed) >= 2
    for each in every:
        is_left = has_pair and each not in coming and each.task.first.title not in failed
        if each not in first and not each.over and not is_left:
            each.abandon(turns, runs_again=False)
    return [each for each in coming if not each.over]


def _turns(
    players: Sequence[Conversation], limit: TimeLimit, *, alone: bool = False
) -> Turns[Conversation]:
    """Return the turns of a round."""
    decided = frozenset(each for each in players if each.run.decided)
    return Turns(
        [Round(tuple(players), players[0].run.blocks, decided)],
        alone=alone,
        tempo=OfConversations(),
        limit=limit,
    )
