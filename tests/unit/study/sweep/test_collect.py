"""The records that a sweep writes, and the handling of trials whose worker died."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.study.sweep.samples import SEEN, a_plan
from trainmark.data.locate import Located
from trainmark.errors import RecordNotKept
from trainmark.execute.parent.plan import Run
from trainmark.record import codec
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record
from trainmark.record.store import Store
from trainmark.study.sweep.collect import collect
from trainmark.study.sweep.plan import SweepPlan
from trainmark.study.sweep.trial import Died, Recorded, failed


class RecordingObserver:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def recorded(self, record: Record) -> None:
        self.seen.append(f"{record.group.trial} {record.outcome.status}: {record.outcome.reason}")

    def lost(self, run: Run, reason: str) -> None:
        self.seen.append(f"{run.trial.number if run.trial else '?'} lost: {reason}")


def news(planned: SweepPlan, number: int) -> Recorded:
    """Return the news that a trial sends at its end."""
    return Recorded(
        number, tuple(map(codec.encode, failed(planned.tasks[number - 1], SEEN, "out of memory")))
    )


def test_each_trial_leaves_one_record_and_a_dead_one_says_why(
    tmp_path: Path, drawn: Located
) -> None:
    planned = a_plan(drawn, "seed=1,2")
    preparation = RecordingObserver()
    store = Store(tmp_path)
    collect(
        [Died(2, "killed", True), news(planned, 1), Died(2, "killed (2 times)", False)],
        planned,
        store,
        preparation.recorded,
        preparation.lost,
    )
    assert preparation.seen == [
        "2 lost: killed",
        "1 failed: out of memory",
        "2 failed: killed (2 times)",
    ]
    assert sorted(record.group.trial or 0 for record in store.read_all()) == [1, 2]


def test_a_trial_of_which_nothing_was_heard_has_a_failed_record(
    tmp_path: Path, drawn: Located
) -> None:
    planned = a_plan(drawn, "seed=1,2")
    preparation = RecordingObserver()
    store = Store(tmp_path)
    collect([news(planned, 1)], planned, store, preparation.recorded, preparation.lost)
    assert preparation.seen[1] == "2 failed: Ray Tune ended without returning its result"
    assert sorted(record.group.trial or 0 for record in store.read_all()) == [1, 2]


def test_a_folder_that_can_not_be_written_ends_the_sweep(tmp_path: Path, drawn: Located) -> None:
    (tmp_path / "out").write_text("not a folder")
    planned = a_plan(drawn, "seed=1")
    with pytest.raises(RecordNotKept):
        collect(
            [news(planned, 1)],
            planned,
            Store(tmp_path / "out"),
            RecordingObserver().recorded,
            RecordingObserver().lost,
        )


def test_trials_that_train_at_the_same_time_say_so(drawn: Located) -> None:
    for others in (True, False):
        (task,) = a_plan(drawn, "seed=1").side_by_side(others).tasks
        assert (Caveat.SIDE_BY_SIDE in failed(task, SEEN, "")[0].caveats) is others
