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
    """Write the records in ``news``, and a failed record for a trial whose last retry died.

    Args:
        recorded: called with each trial's record.
        lost: called with each trial that is retried, and the reason.

    Raises:
        RecordNotKept: the folder is no longer writable.
    """

    def keep(records: list[Record]) -> None:
        store.write_all(records)
        recorded(records[-1])  # the last one is the record of the whole trial

    left = {task.first.trial.number: task for task in planned.tasks if task.first.trial}
    for each in news:
        match each:
            case Recorded():
                del left[each.trial]
                keep([codec.decode(text, "a trial's record") for text in each.records])
            case Died(retried=True):
                lost(left[each.trial].first, each.reason)
            case Died():
                keep(failed(left.pop(each.trial), planned.seen, each.reason))
            case _:
                assert_never(each)
    for task in left.values():
        keep(failed(task, planned.seen, "Ray Tune ended without returning its result"))
