"""Records of an earlier command, from which ``--resume`` continues."""

from __future__ import annotations

import platform
from pathlib import Path

from msgspec import structs

from tests.unit.record.samples import a_record
from trainmark.record.record import Record
from trainmark.record.store import Store
from trainmark.study.earlier import earlier_records
from trainmark.study.observer import StudyObserver


class Messages(StudyObserver):
    """Keeps the messages."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def message(self, text: str) -> None:
        self.texts.append(text)


def of(machine: str, name: str) -> Record:
    record = a_record(id=name)
    return structs.replace(
        record, machine=structs.replace(record.machine, name=machine, cpu=None, identity=None)
    )


def test_resume_ignores_records_of_other_machines_and_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for machine, name in (
        (platform.node(), "mine"),
        ("a-container", "theirs"),
        ("a-container", "theirs-too"),
    ):
        store.write(of(machine, name))
    messages = Messages()
    assert [record.id for record in earlier_records(store, messages)] == ["mine"]
    assert "ignoring 2 records of a-container" in messages.texts[0]


def test_without_records_of_others_there_is_no_message(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(of(platform.node(), "mine"))
    messages = Messages()
    assert [record.id for record in earlier_records(store, messages)] == ["mine"]
    assert messages.texts == []
