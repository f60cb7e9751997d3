"""Records of schema version 1, as trainmark 0.1 wrote them, in the folder ``version_1``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from trainmark.analysis.comparison import compare
from trainmark.record import codec, store
from trainmark.record.facts import Key, RunKey
from trainmark.record.record import SCHEMA_VERSION
from trainmark.report.comparison_table import comparison_tables
from trainmark.report.runs_table import runs_table
from trainmark.workload import catalog
from trainmark.workload.spec import Workload

from .samples import a_record

OLD = Path(__file__).parent / "version_1"


def written(name: str) -> dict[str, Any]:
    data = json.loads((OLD / name).read_text())
    assert data["schema_version"] == 1
    assert isinstance(data, dict)
    return data


def read(data: dict[str, Any]) -> Any:
    return codec.decode(json.dumps(data).encode(), "old.json")


def test_an_old_record_groups_with_a_new_one_of_the_same_workload() -> None:
    old = store.read(OLD / "training.json")
    workload = catalog.find("mnist-mlp32").with_schedule(epochs=1, protocol="fresh")
    assert written("training.json")["workload"]["step_fingerprint"] != workload.step_fingerprint
    new = structs.replace(
        old, id="new", round=1, repeat=1, workload=a_record(workload=workload).workload
    )
    assert Key.of(new, "lab", None) == Key.of(old, "lab", None)
    assert RunKey.of(structs.replace(new, repeat=0)) == RunKey.of(old), (
        "--resume does not train it again"
    )


def test_what_was_read_is_written_in_todays_version() -> None:
    old = store.read(OLD / "training.json")
    assert old.schema_version == SCHEMA_VERSION
    assert codec.decode(codec.encode(old), "r.json") == old


def test_a_users_own_workload_is_hashed_again_from_the_record() -> None:
    data = written("training.json")
    data["workload"]["spec"]["optimizer"]["learning_rate"] = 0.25
    record = read(data)
    workload = Workload.from_data(data["workload"]["spec"])
    assert record.workload.step_fingerprint == workload.step_fingerprint
    assert record.workload.schedule_fingerprint == workload.schedule_fingerprint


def test_a_workload_that_cant_be_read_keeps_its_fingerprints() -> None:
    data = written("training.json")
    data["workload"]["spec"]["model"] = [{"kind": "of-a-plug-in"}]
    assert read(data).workload.step_fingerprint == data["workload"]["step_fingerprint"]


@pytest.mark.parametrize("name", ["command.json", "command-varied.json"])
def test_a_command_keeps_its_fingerprint(name: str) -> None:
    assert (
        store.read(OLD / name).workload.step_fingerprint
        == written(name)["workload"]["step_fingerprint"]
    )


@pytest.mark.parametrize(
    ("name", "style", "device"),
    [
        ("command.json", None, None),
        ("command-on-cpu.json", None, "cpu"),
        ("command-varied.json", "w=a", None),
    ],
)
def test_what_a_command_does_not_tell_is_null(
    name: str, style: str | None, device: str | None
) -> None:
    old = written(name)
    record = store.read(OLD / name)
    assert (old["backend"]["style"], old["device"]["id"]) == (
        style or "as is",
        device or "not told",
    )
    assert (record.backend.style, record.device.id) == (style, device)
    assert record.backend.compile_cache is record.python.label is None
    assert codec.decode(codec.encode(record), "r.json") == record


def test_an_old_command_is_printed_in_the_same_words() -> None:
    (table,) = comparison_tables(compare([store.read(OLD / "command.json")]))
    assert table.rows[0].cells[0].text == "python"
    assert "as is program 9d34fc60" in table.conditions
    (side,) = runs_table([store.read(OLD / "command.json")]).rows
    assert [cell.text for cell in side.cells[3:5]] == ["as is", "-"]


def test_a_record_of_today_is_left_as_it_is() -> None:
    record = a_record()
    odd = structs.replace(
        record, workload=structs.replace(record.workload, step_fingerprint="as it was written")
    )
    assert codec.decode(codec.encode(odd), "r.json") == odd
