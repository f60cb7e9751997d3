from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from tests.records import write_all
from trainmark.errors import ForeignRecord, OutputError, RecordError, RecordNotKept, UsageError
from trainmark.record.store import Store, load, read, safe_name
from trainmark.regular import write_atomically

from .samples import a_record


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_record_is_written_under_its_id_and_read_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "out")
    record = a_record(id="first")
    assert store.read_all() == []
    path = store.write(record)
    assert path == tmp_path / "deep" / "out" / "first.json"
    assert store.read_all() == [record]
    assert path.read_bytes().endswith(b"}\n")
    assert path.stat().st_mode & 0o777 == 0o644


def test_constructing_a_store_touches_nothing(tmp_path: Path) -> None:
    Store(tmp_path / "out")
    assert names(tmp_path) == []


def test_a_record_is_never_replaced(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = store.write(a_record(id="same", seed=1))
    before = path.read_bytes()
    with pytest.raises(OutputError, match=r"same\.json exists already"):
        store.write(a_record(id="same", seed=2))
    assert path.read_bytes() == before
    assert names(tmp_path) == ["same.json"]


@pytest.mark.parametrize("folder", ["file", "file/deeper"])
def test_a_folder_that_is_a_file_is_an_output_error(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    with (
        pytest.raises(
            OutputError, match=r"can't write to .*file.* Choose another folder with --out"
        ),
        Store(tmp_path / folder).locked(),
    ):
        pass
    assert (tmp_path / "file").read_text() == "not a folder"


@pytest.fixture
def shelter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's folder for temporary files."""
    folder = tmp_path / "shelter"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_record_that_has_no_place_is_kept_elsewhere(tmp_path: Path, shelter: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(RecordNotKept, match="It was kept as ") as raised:
        Store(tmp_path / "file").write(a_record(id="kept"))
    (kept,) = shelter.rglob("kept.json")
    assert str(kept) in str(raised.value)
    assert load([kept]) == [a_record(id="kept")]


def test_each_of_several_that_have_no_place_is_kept_elsewhere(
    tmp_path: Path, shelter: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(RecordNotKept, match="2 records could not be written") as raised:
        Store(tmp_path / "file").write_all([a_record(id="rank"), a_record(id="whole")])
    for name in ("rank", "whole"):
        (kept,) = shelter.rglob(f"{name}.json")
        assert str(kept) in str(raised.value)


def test_partial_files_of_a_killed_process_are_removed_later(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    kept = [store.write(a_record(id="whole")), tmp_path / ".others.part", tmp_path / "x.json.part"]
    for path in kept[1:]:
        path.write_text("not trainmark's")
    for name in (".a.json.x1_y2.part", ".a.safetensors.part", ".a.average.safetensors.part"):
        (tmp_path / name).write_bytes(b"half")
    with store.locked():
        assert sorted(tmp_path.iterdir()) == sorted(kept)


WRITES = """
import sys
from pathlib import Path
from trainmark import locks
with Path(sys.argv[1]).open("wb") as file:
    locks.hold(file.fileno())
    print("held", flush=True)
    sys.stdin.read()
"""


def test_what_another_process_is_writing_stays(tmp_path: Path) -> None:
    part = tmp_path / ".a.json.x1_y2.part"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITES, str(part)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    store = Store(tmp_path)
    with writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"held\n"
        with store.locked():
            assert part.exists()
        writer.kill()
    with store.locked():
        assert not part.exists()


FULL_DISK = """
import resource, sys
from pathlib import Path
from tests.records import a_record
from trainmark.errors import RecordNotKept
from trainmark.record.store import Store

resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))  # no file may grow beyond 100 bytes
try:
    Store(Path(sys.argv[1])).write(a_record(id="big"))
except RecordNotKept as error:
    print(error)
"""


def test_a_write_that_fails_half_way_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert "can't write the record big.json into" in done.stdout
    assert "File too large" in done.stdout
    assert names(tmp_path) == []


def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    old = b"a" * 300_000
    new = b"b" * 200_000
    path.write_bytes(old)
    seen: set[bytes] = set()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=look)
    reader.start()
    for content in (new, old) * 10:
        write_atomically(path, content)
    done.set()
    reader.join()
    assert seen <= {old, new}
    assert names(tmp_path) == ["r.json"]


def test_load_reads_each_record_once_and_oldest_first(tmp_path: Path) -> None:
    records = [a_record(id=f"r{number}", round=number) for number in (2, 0, 1)]
    folder = write_all(tmp_path / "out", records)
    (folder / "r0.safetensors").write_bytes(b"not a record")
    (folder / ".r9.json.x.part").write_bytes(b"half a rec")
    loaded = load([folder / "r2.json", folder, folder / "." / "r1.json"])
    assert [record.id for record in loaded] == ["r0", "r1", "r2"]


def test_records_of_one_second_are_ordered_by_round_and_id(tmp_path: Path) -> None:
    places = (("a", 1), ("c", 0), ("b", 0))
    records = [
        a_record(id=name, round=number, created="2026-11-21T10:00:00Z") for name, number in places
    ]
    assert [record.id for record in load([write_all(tmp_path, records)])] == ["b", "c", "a"]


def test_a_path_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no records at .*nowhere: expected .* found nothing"):
        load([tmp_path / "nowhere"])


def test_a_folder_without_records_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(
        UsageError, match=r"no records in .*files that end in \.json.*trainmark run"
    ):
        load([tmp_path])


def test_a_foreign_file_among_the_records_is_named(tmp_path: Path) -> None:
    write_all(tmp_path, [a_record()])
    (tmp_path / "package.json").write_text('{"name": "left-pad"}')
    with pytest.raises(ForeignRecord, match=r"package\.json is not a trainmark record"):
        load([tmp_path])


def test_a_file_that_cannot_be_read_is_a_record_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="can't be read: found No such file"):
        read(tmp_path / "gone.json")
    with pytest.raises(RecordError, match="can't be read: found Is a directory"):
        read(tmp_path)


def test_the_lock_is_no_record(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.locked():
        store.write(a_record(id="one"))
        assert [record.id for record in store.read_all()] == ["one"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mnist-mlp512", "mnist-mlp512"),
        ("cuda:0", "cuda-0"),
        ("mnist-mlp32:two-stage", "mnist-mlp32-two-stage"),
        ("../../etc/passwd", "etc-passwd"),
        ("a b\tc\nd", "a-b-c-d"),
        ("..", "x"),
        ("", "x"),
        (".hidden", "hidden"),
        ("Größe", "Gr-e"),
        ("2.1.0", "2.1.0"),
        ("a\0b", "a-b"),
    ],
)
def test_safe_name(text: str, name: str) -> None:
    assert safe_name(text) == name


def test_every_stray_file_is_named_at_once(tmp_path: Path) -> None:
    Store(tmp_path).write(a_record())
    for name in ("notes.json", "package.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(
        ForeignRecord, match=r"(?s)2 files are not trainmark records.*notes\.json.*package\.json"
    ):
        load([tmp_path])


def test_a_link_to_itself_is_an_error_not_a_loop(tmp_path: Path) -> None:
    (tmp_path / "a.json").symlink_to("a.json")
    with pytest.raises(RecordError):
        load([tmp_path])
