"""The folder of results stays valid whenever a process is killed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from gpu import store
from gpu.store import Result

from tests.unit.bench.agenda.conftest import CONTEXT

RESULT = Result("first", True, [], 1.0, CONTEXT, [{"value": 1}])


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    store.write(tmp_path, "item", RESULT)
    store.write(tmp_path, "item", dataclasses.replace(RESULT, measurement="second", complete=False))
    assert store.read(tmp_path, "item")["first"] == RESULT
    assert list(store.read(tmp_path, "item")) == ["first", "second"]
    assert store.read(tmp_path, "other") == {}


def test_half_a_file_is_never_read(tmp_path: Path) -> None:
    store.write(tmp_path, "item", RESULT)
    (tmp_path / "item" / ".second.json.1.partial").write_text('{"measurement": "sec')
    assert list(store.read(tmp_path, "item")) == ["first"]


def test_a_torn_row_is_ignored_and_overwritten(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    store.append_row(rows, {"value": 1})
    with rows.open("ab") as opened:
        opened.write(b'{"value": 2, "and"')
    assert store.read_rows(rows) == [{"value": 1}]
    store.drop_torn_line(rows)
    store.append_row(rows, {"value": 3})
    assert store.read_rows(rows) == [{"value": 1}, {"value": 3}]


@pytest.mark.parametrize(
    "other", [{"device": "cpu"}, {"quick": True}, {"device_name": "Another GPU"}]
)
def test_other_conditions_need_another_folder(tmp_path: Path, other: dict[str, object]) -> None:
    store.write(tmp_path, "item", RESULT)
    store.require_same_conditions(tmp_path, ["item"], {**CONTEXT, "commit": "another"})
    with pytest.raises(SystemExit, match="Name another folder"):
        store.require_same_conditions(tmp_path, ["item"], {**CONTEXT, **other})


def test_records_next_to_the_results_are_no_results(tmp_path: Path) -> None:
    store.write(tmp_path, "item", RESULT)
    for folder in (tmp_path / "item" / "first", tmp_path / "older-records"):
        folder.mkdir()
        (folder / "record.json").write_text("{}")
    store.require_same_conditions(tmp_path, ["item"], CONTEXT)
    assert list(store.read(tmp_path, "item")) == ["first"]
