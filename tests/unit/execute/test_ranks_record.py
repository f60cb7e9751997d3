"""Records of a run on several processes, from made-up messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmark.backends.layout import Layout
from trainmark.data.locate import Located
from trainmark.execute.parent.machine_state import read_machine_state
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side, Spreading
from trainmark.execute.parent.probe import THIS, Seen
from trainmark.execute.parent.ranks_record import RanksRecordBuilder
from trainmark.execute.protocol.answers import (
    Answer,
    EpochEnded,
    Failed,
    Finished,
    OfRank,
    RankBorn,
)
from trainmark.record.record import Outcome
from trainmark.workload import catalog

DATA = Located("mnist", Path("/data"), "a test", "5f" * 32, True, 60_000, 10_000)
EPOCH = EpochEnded(0, start=1.0, seconds=2.0, steps=2, examples=256, losses=[2.0, 1.0])


@pytest.fixture
def notes() -> RanksRecordBuilder:
    scheduled = ScheduledWorkload(
        catalog.find("mnist-mlp512").with_schedule(steps=2, evaluate="end"), DATA, 1
    )
    side = Side("torch", "fast", "cuda:0", THIS)
    spread = Spreading(Layout(data=2))
    run = Run(scheduled, side, Settings(kind="scale"), 0, 0, "plan", "plan", spread)
    return RanksRecordBuilder(run, Seen("torch", THIS), read_machine_state(), None, "token")


def say(notes: RanksRecordBuilder, rank: int, *answers: Answer) -> None:
    for answer in answers:
        notes.on_answer(OfRank(rank, answer))
        if rank == 0 and not isinstance(answer, (RankBorn, Finished)):
            notes.on_answer(answer)


def born(rank: int, host: str = "a") -> RankBorn:
    return RankBorn(rank, rank, host)


def finished(rank: int) -> Finished:
    return Finished(unchanged_weights=[], host_peak_bytes=100 + rank)


def test_each_rank_has_a_record_and_the_whole_comes_last(notes: RanksRecordBuilder) -> None:
    for rank in (1, 0):
        say(notes, rank, born(rank), EPOCH, finished(rank))
    notes.on_answer(finished(0))
    first, second, whole = notes.records(Outcome("ok"))
    assert [record.group.rank for record in (first, second, whole)] == [0, 1, None]
    assert {record.group.world for record in (first, second, whole)} == {2}
    assert [record.device.id for record in (first, second, whole)] == ["cuda:0", "cuda:1", "cuda:0"]
    assert len({record.id for record in (first, second, whole)}) == 3
    assert whole.step_losses == second.step_losses == [2.0, 1.0]
    assert (whole.memory.host_peak_bytes, whole.memory.device_peak_bytes) == (201, None)
    assert whole.group.spread is not None and (
        whole.group.spread.data,
        whole.group.spread.host,
    ) == (2, None)
    assert second.group.spread is not None and second.group.spread.host == "a"


def test_a_failure_is_in_the_record_of_the_rank_and_of_the_whole(notes: RanksRecordBuilder) -> None:
    for rank in (0, 1):
        say(notes, rank, born(rank))
    notes.on_answer(Failed("rank 1 was killed by SIGKILL", 1))
    outcome = Outcome("failed", "rank 1 was killed by SIGKILL", stderr_tail="words")
    first, second, whole = notes.records(outcome)
    assert first.outcome == Outcome("failed", "ended with rank 1, which failed first")
    assert second.outcome == Outcome("failed", "rank 1 was killed by SIGKILL")
    assert whole.outcome == outcome


def test_the_whole_is_recorded_where_rank_0_is(notes: RanksRecordBuilder) -> None:
    say(notes, 1, born(1, "b"))
    assert [record.group.rank for record in notes.records(Outcome("ok"))] == [1]


def test_a_run_whose_ranks_never_came_has_a_record_all_the_same(notes: RanksRecordBuilder) -> None:
    (whole,) = notes.records(Outcome("failed", "the machines did not find each other"))
    assert whole.group.rank is None
