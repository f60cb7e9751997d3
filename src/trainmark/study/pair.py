"""Compare a training with itself under other settings, in rounds of slices only."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial

from trainmark.execute.parent.machine_state import read_machine_state
from trainmark.execute.parent.opening import OpeningListener
from trainmark.execute.parent.plan import Run, Settings
from trainmark.execute.parent.probe import Interpreter
from trainmark.execute.parent.scheduler import RunObserver, execute
from trainmark.execute.parent.task import Task, in_rounds
from trainmark.record.record import Record
from trainmark.record.store import Store
from trainmark.study.chosen import ChosenSide
from trainmark.study.rounds import Budget, rounds_within, slices_alone


def compare_settings(
    chosen: ChosenSide,
    settings: Mapping[str, Settings],
    store: Store,
    running: Callable[[Sequence[Task[Run]]], AbstractContextManager[RunObserver]],
    budget: Budget,
    on_message: Callable[[str], None],
    labels: Mapping[str, str] | None = None,
) -> list[list[Record]]:
    """Run ``chosen`` with each of ``settings`` in rounds until the budget is used up.

    Args:
        settings: settings by label; in the records, the label is that of the interpreter.
        running: follows the runs of some tasks.
        on_message: called with the reason why there are no more rounds.
        labels: labels of this machine, for the records.

    Returns:
        The records of each setting.
    """
    path = chosen.side.interpreter.path
    sides = [
        dataclasses.replace(chosen.side, interpreter=Interpreter(label, path)) for label in settings
    ]
    seen = {(chosen.side.backend, label): chosen.seen for label in settings}
    planned: list[Task[Run]] = []
    for task in in_rounds([(chosen.scheduled, sides)], chosen.settings):
        own = settings[task.first.side.interpreter.label]
        run = dataclasses.replace(task.first, settings=own)
        planned.append(slices_alone(Task((run,))))
    apart = list[object]()
    following = running(planned)

    def carry_out(
        tasks: list[Task[Run]], opening: OpeningListener | None = None, /
    ) -> list[Record]:
        with following as observer:
            read_state = partial(read_machine_state, labels)
            return execute(tasks, seen, store, observer, read_state, apart=apart, opening=opening)

    records = rounds_within(budget, planned, carry_out, on_message, looks=())
    return [[record for record in records if record.python.label == label] for label in settings]
