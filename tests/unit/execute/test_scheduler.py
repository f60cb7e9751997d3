"""The processes of a round, started, listened to and recorded, whatever becomes of one of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from trainmark.backends.layout import Layout, Rendezvous
from trainmark.data.locate import Located
from trainmark.execute.parent.conversation import Conversation
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side, Spreading
from trainmark.execute.parent.probe import THIS, Interpreter, probe
from trainmark.execute.parent.scheduler import RunObserver, execute
from trainmark.execute.parent.task import Task, in_rounds
from trainmark.measure.sampler import Sampler
from trainmark.record.record import Outcome
from trainmark.record.store import Store
from trainmark.workload import catalog


def a_round(digits: Located, *interpreters: Interpreter) -> list[Task[Run]]:
    scheduled = ScheduledWorkload(catalog.find("mnist-mlp32").with_schedule(steps=20), digits, 1)
    return in_rounds(
        [(scheduled, [Side("numpy", "idiomatic", "cpu", each) for each in interpreters])],
        Settings(),
    )


@pytest.mark.parametrize(("nodes", "threads", "used"), [(1, 1, 2), (2, 3, 3), (1, None, None)])
def test_ranks_use_the_threads_of_all_ranks_on_this_machine(
    drawn: Located, nodes: int, threads: int | None, used: int | None
) -> None:
    (task,) = a_round(drawn, THIS)
    spread = Spreading(Layout(data=2), rendezvous=Rendezvous(nodes=nodes))
    run = dataclasses.replace(task.first, spread=spread, settings=Settings(threads=threads))
    conversation = Conversation(
        Task((run,)), list, Store(Path("out")), RunObserver(), Sampler(), []
    )
    assert conversation.threads == used


def test_ctrl_c_while_a_process_ends_still_leaves_a_record(
    drawn: Located, monkeypatch: pytest.MonkeyPatch
) -> None:
    (task,) = a_round(drawn, THIS)
    conversation = Conversation(task, list, Store(Path("out")), RunObserver(), Sampler(), [])

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Conversation, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        conversation.break_off(Outcome("timeout", "too slow"))
    assert not conversation.over, "so it is broken off again, with a record"


def test_a_side_that_cannot_be_started_has_a_record_and_the_other_trains(
    tmp_path: Path, drawn: Located
) -> None:
    gone = Interpreter("gone", tmp_path / "no" / "python")
    tasks = a_round(drawn, gone, THIS)
    can = probe(THIS, "numpy")
    seen = {("numpy", each.label): can for each in (gone, THIS)}
    records = execute(tasks, seen, Store(tmp_path / "out"), RunObserver())
    outcomes = {record.python.label: record.outcome for record in records}
    assert outcomes["gone"].status == "failed"
    assert "can't be started" in (outcomes["gone"].reason or "")
    assert outcomes["default"].status == "ok", outcomes["default"].reason
