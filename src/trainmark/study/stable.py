"""Rounds until the intervals are narrow enough: ``trainmark run --until-stable PERCENT``.

To stop when the interval has become narrow favours rounds that happened to agree, so the fewest rounds are not few,
and the percentage is of the width alone: where the ratio lies decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from trainmark.analysis.comparison import compare
from trainmark.execute.parent.task import AnyRun, Task
from trainmark.record.record import Record
from trainmark.units import many

FEWEST_ROUNDS, MOST_ROUNDS = 5, 50


def rounds_until_stable(
    planned: Sequence[Task[AnyRun]],
    execute: Callable[[list[Task[AnyRun]]], list[Record]],
    percent: float | None,
    *,
    most_rounds: int = MOST_ROUNDS,
    told: Callable[[str], None] = lambda _: None,
) -> list[Record]:
    """Carry out ``planned``, and more rounds of it until every interval lies within ±``percent``.

    Args:
        planned: rounds of fresh runs; there will be :data:`FEWEST_ROUNDS` at least.
        execute: carries tasks out.
        percent: half the width of the interval, of the ratio; of the seconds of an epoch where nothing is compared.
            None adds no rounds.
        most_rounds: in all, the planned ones among them.
        told: what is being done, in a sentence.

    Returns:
        The records of all rounds.
    """
    records = execute(list(planned))
    if percent is None:
        return records
    rounds = 1 + max(task.round for task in planned)
    while True:
        wide = widest(records)
        width = "there is no interval" if wide is None else f"the widest interval is ±{100 * wide:.1f} %"
        after = f"after {many(rounds, 'round')} {width}"
        if any(record.outcome.status != "ok" for record in records):
            told(f"{after}; a run failed, so there are no more")
        elif wide is not None and wide <= percent / 100 and rounds >= FEWEST_ROUNDS:
            told(f"{after}, as was asked for")
        elif rounds >= most_rounds:
            told(f"{after}, and there are no more than {most_rounds} rounds: ±{percent:g} % was not reached")
        else:
            least = f" ({FEWEST_ROUNDS} at least)" if rounds < FEWEST_ROUNDS else ""
            told(f"{after}: one more{least}")
            records += execute(list(_round(planned, rounds)))
            rounds += 1
            continue
        return records


def widest(records: Iterable[Record]) -> float | None:
    """Half the width of the widest interval, as a fraction; None where nothing has one."""
    comparison = compare(records)
    compared = {group.reference for position, group in enumerate(comparison.groups) if group.reference != position}
    widths = []
    for position, group in enumerate(comparison.groups):
        if comparison.is_reference(position):
            alone = group.epoch_seconds if group.epoch_seconds.median is not None else group.process_seconds
            low, high = alone.low, alone.high
            if position in compared:
                continue  # its own spread is in the ratios of the others
        else:
            low, high = group.speedup.low, group.speedup.high
        if low and high:
            widths.append(math.sqrt(high / low) - 1)
    return max(widths, default=None)


def _round(planned: Sequence[Task[AnyRun]], number: int) -> Iterator[Task[AnyRun]]:
    """One more round of every side: the last planned one with the next number."""
    last = max(task.round for task in planned)
    return (task.in_round(number) for task in planned if task.round == last)
