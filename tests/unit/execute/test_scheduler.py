"""The processes of a round, started, listened to and recorded, whatever becomes of one of them."""

from __future__ import annotations

from pathlib import Path

from trainmark.data.locate import Located
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side
from trainmark.execute.parent.probe import THIS, Interpreter, probe
from trainmark.execute.parent.scheduler import Observer, execute
from trainmark.execute.parent.task import Task, in_rounds
from trainmark.record.store import Store
from trainmark.workload import catalog


def a_round(digits: Located, *interpreters: Interpreter) -> list[Task[Run]]:
    course = ScheduledWorkload(catalog.find("mnist-mlp32").with_schedule(steps=200), digits, 1)
    return in_rounds([(course, [Side("numpy", "idiomatic", "cpu", each) for each in interpreters])], Settings())


def test_a_side_that_cannot_be_started_has_a_record_and_the_other_trains(tmp_path: Path, drawn: Located) -> None:
    gone = Interpreter("gone", tmp_path / "no" / "python")
    tasks = a_round(drawn, gone, THIS)
    can = probe(THIS, "numpy")
    seen = {("numpy", each.label): can for each in (gone, THIS)}
    records = execute(tasks, seen, Store(tmp_path / "out"), Observer())
    outcomes = {record.python.label: record.outcome for record in records}
    assert outcomes["gone"].status == "failed"
    assert "can't be started" in (outcomes["gone"].reason or "")
    assert outcomes["default"].status == "ok", outcomes["default"].reason
