"""Writes the record of each trial when it arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_never

from trainmark.execute.parent.plan import Run
from trainmark.record import codec
from trainmark.record.record import Record
from trainmark.record.store import Store
from trainmark.study.sweep.plan import SweepPlan
from trainmark.study.sweep.trial import Died, Recorded, failed


def collect(
    news: Iterable[Recorded | Died],
    planned: SweepPlan,
    store: Store,
    recorded: Callable[[Record], None],
    lost: Callable[[Run, str], None],
) -> None:
    """Write the records that ``news`` brings, and a failed one for a trial whose worker died for the last time.

    Args:
        recorded: told of each trial's record.
        lost: told of each trial that is tried again, and why.

    Raises:
        RecordNotKept: the folder is not writable any more.
    """
    left = {task.first.trial.number: task for task in planned.tasks if task.first.trial}
    for each in news:
        match each:
            case Recorded():
                records = [codec.decode(text, "a trial's record") for text in each.records]
                del left[each.trial]
            case Died(retried=True):
                lost(left[each.trial].first, each.reason)
                continue
            case Died():
                records = failed(left.pop(each.trial), planned.seen, each.reason)
            case _:
                assert_never(each)
        store.write_all(records)
        recorded(records[-1])  # the last of several is that of the whole trial
    for task in left.values():
        records = failed(task, planned.seen, "Ray Tune ended without its result")
        store.write_all(records)
        recorded(records[-1])
