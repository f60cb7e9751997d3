"""The same training twice, as if it were two sides: what a machine shows where there is no difference."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from functools import partial

from trainmark.analysis.noise import Noise, noise_of
from trainmark.errors import NoiseFailed
from trainmark.execute.parent.here import look_around
from trainmark.execute.parent.plan import Run
from trainmark.execute.parent.probe import Interpreter
from trainmark.execute.parent.scheduler import execute
from trainmark.execute.parent.task import Task, in_rounds
from trainmark.record.record import Record
from trainmark.record.store import Store
from trainmark.study.chosen import ChosenSide
from trainmark.study.progress import Progress
from trainmark.study.rounds import Budget, rounds_within, slices_alone

LABELS = ("A", "B")


def measure(
    chosen: ChosenSide,
    store: Store,
    progress: Progress,
    budget: Budget,
    labels: Mapping[str, str] | None = None,
) -> Noise:
    """Compare ``chosen`` with itself until the budget is spent.

    Raises:
        NoiseFailed: nothing could be compared.
    """
    sides = [
        dataclasses.replace(chosen.side, interpreter=Interpreter(label, chosen.side.interpreter.path))
        for label in LABELS
    ]
    seen = {(chosen.side.backend, label): chosen.seen for label in LABELS}
    planned = [slices_alone(task) for task in in_rounds([(chosen.course, sides)], chosen.settings)]
    start = time.perf_counter()

    def carry_out(tasks: list[Task[Run]]) -> list[Record]:
        with progress.running(tasks, store.folder, resumes=False) as observer:
            return execute(tasks, seen, store, observer, partial(look_around, labels))

    with store.locked():
        records = rounds_within(budget, planned, carry_out, progress.say, looks=())
    seconds = time.perf_counter() - start
    one, other = ([record for record in records if record.python.label == label] for label in LABELS)
    found = noise_of(one, other, seconds, budget.margin)
    if found is None:
        broken = next((record.outcome.reason for record in records if record.outcome.status != "ok"), None)
        raise NoiseFailed(f"{chosen.side.title} can't be compared with itself", found=broken or "no slice in common")
    return found
