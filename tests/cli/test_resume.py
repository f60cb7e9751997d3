from __future__ import annotations

import platform
from pathlib import Path

import pytest
from msgspec import structs

from tests.unit.record.samples import a_record
from trainmark.cli.output import made_before
from trainmark.record.record import Record
from trainmark.record.store import Store


def of(machine: str, name: str) -> Record:
    record = a_record(id=name)
    return structs.replace(record, machine=structs.replace(record.machine, name=machine, cpu=None, identity=None))


def test_resume_goes_on_from_this_machine_and_says_what_it_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path)
    for machine, name in ((platform.node(), "mine"), ("a-container", "theirs"), ("a-container", "theirs-too")):
        store.write(of(machine, name))
    assert [record.id for record in made_before(store)] == ["mine"]
    assert "left out 2 records of a-container" in capsys.readouterr().err


def test_where_all_is_its_own_nothing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path)
    store.write(of(platform.node(), "mine"))
    assert [record.id for record in made_before(store)] == ["mine"]
    assert capsys.readouterr().err == ""
