"""Hands trials out, takes their records in, and gives those whose worker died another try."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from trainmark.errors import RecordError, RecordNotKept
from trainmark.execute.here import Here, look_around
from trainmark.execute.plan import Run, Task
from trainmark.record import codec
from trainmark.record.record import Record
from trainmark.record.store import Store, together
from trainmark.study.sweep.plan import with_trial
from trainmark.study.sweep.trial import Answers, failed

LOOK_EVERY_SECONDS = 0.25


@dataclass(frozen=True)
class Lost:
    """A trial that came back without records.

    Args:
        reason: why, for people.
        again: whether another try may help: its worker died, or its node.
    """

    reason: str
    again: bool


class Pool(Protocol):
    """Whoever carries trials out, several at a time."""

    def start(self, number: int, task: Task, seen: Answers) -> None:
        """Begin with a trial that is called ``number`` here."""

    def ended(self, seconds: float) -> Iterator[tuple[int, Sequence[bytes] | Lost]]:
        """Trials that have ended, waiting for the first of them so long."""


class Watcher(Protocol):
    """Whoever watches."""

    def recorded(self, record: Record) -> None:
        """A record was written."""

    def lost(self, run: Run, reason: str) -> None:
        """A trial's worker died; it will be tried again."""

    def counted(self, running: int, waiting: int) -> None:
        """How many trials are being trained, and how many are yet to be."""


def carry_out(
    tasks: Iterable[Task],
    seen: Answers,
    pool: Pool,
    store: Store,
    watcher: Watcher,
    *,
    at_once: int,
    retries: int = 1,
    here: Callable[[], Here] = look_around,
) -> list[Record]:
    """Carry out ``tasks``, and write a record of each, once, as soon as it ends.

    Args:
        at_once: how many may be under way.
        retries: how often a trial is tried again whose worker died.
        here: reads the machine, for the record of a trial whose worker is no more.

    Returns:
        The records, in the order in which the trials ended.

    Raises:
        RecordNotKept: the folder can't be written any more.
    """
    every = [_beside_others(task, at_once > 1) for task in tasks]
    waiting = deque((number, 0) for number in range(len(every)))
    tries: dict[int, int] = {}
    records: list[Record] = []
    lost: list[RecordNotKept] = []
    while waiting or tries:
        while waiting and len(tries) < at_once:
            number, before = waiting.popleft()
            tries[number] = before + 1
            pool.start(number, every[number], seen)
        watcher.counted(len(tries), len(waiting))
        for number, came in pool.ended(LOOK_EVERY_SECONDS):
            tried, task = tries.pop(number), every[number]
            found = _decoded(came)
            if isinstance(found, Lost):
                if found.again and tried <= retries:
                    watcher.lost(task.first, found.reason)
                    waiting.appendleft((number, tried))
                    continue
                often = f" ({tried} times)" if tried > 1 else ""
                found = failed(task, seen, f"{found.reason}{often}", here())
            try:
                store.write_all(found)
            except RecordNotKept as error:  # what is under way may end and be kept elsewhere; nothing more is begun
                lost.append(error)
                waiting.clear()
                continue
            records += found
            watcher.recorded(records[-1])  # of several the last is that of the whole
    if lost:
        raise together(lost)
    return records


def _decoded(came: Sequence[bytes] | Lost) -> list[Record] | Lost:
    if isinstance(came, Lost):
        return came
    try:
        return [codec.decode(text, "what a trial left") for text in came]
    except RecordError as error:  # another trainmark on that node
        return Lost(str(error), again=False)


def _beside_others(task: Task, others: bool) -> Task:
    trial = task.first.trial
    return task if trial is None else with_trial(task, dataclasses.replace(trial, side_by_side=others))
