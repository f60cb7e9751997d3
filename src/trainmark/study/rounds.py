"""Rounds until the verdict is decided, or the budget is spent.

The first rounds train to the end, since they judge learning too; further ones stop after their slices. Looking often
and stopping at the first verdict would find a difference between equal sides sooner or later, so the verdict is looked
at after a few planned numbers of rounds only, by wider intervals, and the last interval is wider for it, too
(:data:`~trainmark.analysis.statistics.LOOK_CONFIDENCE`).
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainmark.analysis.comparison import MARGIN, compare
from trainmark.analysis.statistics import LOOK_CONFIDENCE
from trainmark.errors import UsageError
from trainmark.execute.parent.plan import Run
from trainmark.execute.parent.task import AnyRun, Task
from trainmark.record.record import Record
from trainmark.units import many, seconds

LOOKS = (3, 6, 12, 24)
"""Numbers of rounds after which the verdict may end the measuring."""
BLOCKS = 4
"""Of slices, in a round that does not train to the end."""


@dataclass(frozen=True)
class Budget:
    """How long a verdict may take.

    Args:
        seconds: from the start of the first round; no round begins that would probably end later.
        margin: what still counts as the same speed, a fraction.
    """

    seconds: float = 60.0
    margin: float = MARGIN

    def __post_init__(self) -> None:
        for name, value in (("the budget", self.seconds), ("the margin", self.margin)):
            if not 0 <= value < math.inf:
                raise UsageError(f"{name} is out of bounds", expected="a number from 0", found=f"{value:g}")

    @classmethod
    def of(cls, seconds: float, percent: float) -> Budget:
        """From the options; the margin is in percent."""
        return cls(seconds, percent / 100)


def rounds_within(
    budget: Budget,
    planned: Sequence[Task[AnyRun]],
    execute: Callable[[list[Task[AnyRun]]], list[Record]],
    tell: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
    looks: Sequence[int] = LOOKS,
) -> list[Record]:
    """Carry out ``planned``, and more rounds of it while the verdict is open and the budget allows.

    Args:
        planned: rounds of fresh runs.
        execute: carries tasks out.
        tell: is told why there are no more rounds.
        looks: numbers of rounds after which the verdict may end them.

    Returns:
        The records of all rounds.
    """
    start = clock()
    records = execute(list(planned))
    number = 1 + max(task.round for task in planned)
    round_seconds = (clock() - start) / number
    while all(record.outcome.status == "ok" for record in records):
        after = f"after {many(number, 'round')} in {seconds(clock() - start)}"
        if number in looks and _decided(records, budget.margin):
            tell(f"{after} the verdict is decided")
            break
        if clock() - start + round_seconds > budget.seconds:
            if budget.seconds:
                tell(f"{after} the budget of {seconds(budget.seconds)} is spent")
            break
        began = clock()
        records += execute(list(_round(planned, number)))
        number, round_seconds = number + 1, clock() - began
    return records


def _decided(records: Sequence[Record], margin: float) -> bool:
    """Whether every side has a verdict by the interval of a look."""
    comparison = compare(records, margin=margin, confidence=LOOK_CONFIDENCE)
    return all(
        group.speedup.verdict != "unclear"
        for position, group in enumerate(comparison.groups)
        if not comparison.is_reference(position)
    )


def _round(planned: Sequence[Task[AnyRun]], number: int) -> Iterator[Task[AnyRun]]:
    """One more round of every side; of a training, slices alone."""
    last = max(task.round for task in planned)
    for task in planned:
        if task.round == last:
            again: Task[Any] = task.in_round(number)
            following: Task[Any] = slices_alone(again) if isinstance(again.first, Run) else again
            yield following


def slices_alone(task: Task[Run]) -> Task[Run]:
    """The same without a training to the end."""
    return Task(tuple(dataclasses.replace(run, blocks=BLOCKS) for run in task.runs))
