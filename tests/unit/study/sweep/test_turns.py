"""Who gets which trial, and what becomes of those whose worker died; no Ray is needed for that."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.unit.study.sweep.samples import SEEN, a_plan
from trainmark.data.locate import Located
from trainmark.errors import RecordNotKept
from trainmark.execute.here import look_around
from trainmark.execute.plan import Run, Task
from trainmark.record import codec
from trainmark.record.caveats import Caveat
from trainmark.record.record import Outcome, Record
from trainmark.record.store import Store, load
from trainmark.study.sweep.trial import Answers, failed
from trainmark.study.sweep.turns import Lost, carry_out

HERE = look_around()
DEAD = Lost("its Ray worker died: gone", again=True)


class APool:
    """Ends trials in turn, as it was told for each: an Outcome, or lost."""

    def __init__(self, *ends: object) -> None:
        self.ends, self.under_way, self.most = list(ends), [], 0  # type: ignore[var-annotated]

    def start(self, number: int, task: Task, seen: Answers) -> None:
        self.under_way.append((number, task))
        self.most = max(self.most, len(self.under_way))

    def ended(self, seconds: float) -> Iterator[tuple[int, Sequence[bytes] | Lost]]:
        number, task = self.under_way.pop(0)
        end = self.ends.pop(0) if self.ends else Outcome("ok")
        if isinstance(end, Outcome):
            yield number, [codec.encode(_ended(record, end)) for record in failed(task, SEEN, "", HERE)]
        else:
            assert isinstance(end, (Lost, list))
            yield number, end


def _ended(record: Record, end: Outcome) -> Record:
    from msgspec import structs

    return structs.replace(record, outcome=end)


class AWatcher:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def recorded(self, record: Record) -> None:
        self.seen.append(f"{record.group.trial} {record.outcome.status}")

    def lost(self, run: Run, reason: str) -> None:
        self.seen.append(f"{run.trial.number if run.trial else '?'} lost")

    def counted(self, running: int, waiting: int) -> None:
        assert running + waiting > 0


def swept(
    folder: Path, data: Located, pool: APool, *, at_once: int = 2, retries: int = 1
) -> tuple[list[Record], list[str]]:
    watcher, planned = AWatcher(), a_plan(data, "seed=1,2,3,4")
    made = carry_out(
        planned.tasks, SEEN, pool, Store(folder), watcher, at_once=at_once, retries=retries, here=lambda: HERE
    )
    assert {record.id for record in Store(folder).read_all()} == {record.id for record in made}
    return made, watcher.seen


def test_as_many_at_a_time_as_allowed_and_each_once(tmp_path: Path, drawn: Located) -> None:
    pool = APool()
    made, seen = swept(tmp_path, drawn, pool, at_once=3)
    assert seen == ["1 ok", "2 ok", "3 ok", "4 ok"]
    assert pool.most == 3
    assert [record.group.trial for record in made] == [1, 2, 3, 4]
    assert [record.group.values for record in made] == [{"seed": number} for number in (1, 2, 3, 4)]
    assert all("-t" in record.id for record in made)


def test_a_trial_whose_worker_died_is_tried_again(tmp_path: Path, drawn: Located) -> None:
    made, seen = swept(tmp_path, drawn, APool(DEAD), at_once=1)
    assert seen == ["1 lost", "1 ok", "2 ok", "3 ok", "4 ok"]
    assert len(made) == 4


def test_after_the_last_try_it_is_recorded_with_the_reason(tmp_path: Path, drawn: Located) -> None:
    made, seen = swept(tmp_path, drawn, APool(DEAD, DEAD, DEAD), at_once=1, retries=2)
    assert seen == ["1 lost", "1 lost", "1 failed", "2 ok", "3 ok", "4 ok"]
    assert made[0].outcome.reason == "its Ray worker died: gone (3 times)"
    assert made[0].group.trial == 1 and made[0].group.values == {"seed": 1}


def test_what_another_try_would_not_mend_is_not_tried_again(tmp_path: Path, drawn: Located) -> None:
    made, seen = swept(tmp_path, drawn, APool(Lost("ImportError", again=False)), at_once=1)
    assert seen[0] == "1 failed" and made[0].outcome.reason == "ImportError"


def test_a_failed_training_is_a_record_and_not_tried_again(tmp_path: Path, drawn: Located) -> None:
    _, seen = swept(tmp_path, drawn, APool(Outcome("failed", "out of memory")), at_once=1)
    assert seen == ["1 failed", "2 ok", "3 ok", "4 ok"]


def test_what_is_no_record_fails_that_trial_alone(tmp_path: Path, drawn: Located) -> None:
    made, seen = swept(tmp_path, drawn, APool([b"{}"]), at_once=1)
    assert seen[0] == "1 failed" and "is not a trainmark record" in (made[0].outcome.reason or "")


def test_where_nothing_can_be_written_what_is_under_way_is_kept_elsewhere_and_no_more_begun(
    tmp_path: Path, drawn: Located, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shelter").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "shelter"))
    (tmp_path / "out").write_text("not a folder")
    with pytest.raises(RecordNotKept, match="2 records could not be written"):
        swept(tmp_path / "out", drawn, APool(), at_once=2)
    assert [record.group.trial for record in load(sorted((tmp_path / "shelter").rglob("*.json")))] == [1, 2]


@pytest.mark.parametrize(("at_once", "beside"), [(1, False), (2, True)])
def test_trials_side_by_side_say_so(tmp_path: Path, drawn: Located, at_once: int, beside: bool) -> None:
    made, _ = swept(tmp_path, drawn, APool(), at_once=at_once)
    assert {Caveat.SIDE_BY_SIDE in record.caveats for record in made} == {beside}
