"""Records from strangers."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from fuzz.structure import changed
from trainmark.errors import ForeignRecord, OutputError, RecordError, TrainmarkError
from trainmark.record import codec, store
from trainmark.record.store import Store

from .samples import a_record

PLAIN: dict[str, Any] = json.loads(codec.encode(a_record()))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_a_changed_record_is_a_record_or_foreign(seed: int) -> None:
    text = json.dumps(changed(PLAIN, random.Random(seed))).encode()
    try:
        record = codec.decode(text, "r.json")
    except TrainmarkError:
        return
    assert codec.content(codec.decode(codec.encode(record), "r.json")) == codec.content(record)


@given(st.binary(max_size=300))
def test_bytes_are_a_record_or_foreign(text: bytes) -> None:
    with pytest.raises(RecordError):
        codec.decode(text, "r.json")


@pytest.mark.parametrize(
    "number", ["1" * 30, "-" + "9" * 25, "1" * 5_000, "1e999", "-1e999", "NaN", "Infinity"]
)
@pytest.mark.parametrize("key", ["seed", "round", "price_per_hour"])
def test_a_number_that_no_machine_holds_is_foreign(number: str, key: str) -> None:
    text = json.dumps({**PLAIN, key: "HERE"}).replace('"HERE"', number).encode()
    if key == "price_per_hour" and set(number) <= set("19-") and len(number) < 100:
        assert codec.decode(text, "r.json").price_per_hour == float(number)
        return
    with pytest.raises(ForeignRecord):
        codec.decode(text, "r.json")


@pytest.mark.parametrize("depth", [65, 200, 900, 990, 1_100, 100_000])
def test_values_nested_too_deeply_are_foreign(depth: int) -> None:
    text = json.dumps({**PLAIN, "workload": {**PLAIN["workload"], "spec": {"a": "HERE"}}})
    with pytest.raises(ForeignRecord):
        codec.decode(text.replace('"HERE"', "[" * depth + "]" * depth).encode(), "r.json")


def test_a_key_given_twice_counts_once() -> None:
    text = codec.encode(a_record()).replace(b"{\n", b'{\n"id": "first",\n', 1)
    assert codec.decode(text, "r.json").id == a_record().id


@pytest.mark.timeout(120)
def test_other_files_among_records_are_named_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(RecordError, match="not a regular file"):
        store.load([tmp_path])
    (tmp_path / "pipe.json").unlink()
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    with pytest.raises(RecordError, match="not a regular file"):
        store.load([tmp_path])
    for path in (tmp_path / "zero.json", Path("/dev/zero")):
        with pytest.raises(TrainmarkError):
            store.load([path])


def test_a_record_of_many_gigabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(20 << 30)
    with pytest.raises(RecordError, match="larger than"):
        store.read(path)


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a/b", "..", ""])
def test_a_record_is_written_into_its_folder_or_not_at_all(tmp_path: Path, name: str) -> None:
    out = tmp_path / "a" / "b" / "out"
    record = structs.replace(a_record(), id=name)
    if "/" in name:
        with pytest.raises(OutputError, match="no name of a file"):
            Store(out).write(record)
    else:
        assert Store(out).write(record).parent == out
    assert not [path for path in tmp_path.rglob("*.json") if path.parent != out]
