from __future__ import annotations

import os
import stat
import tracemalloc
from pathlib import Path

import pytest

from trainmark import regular


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert regular.read(path, 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        regular.read(path, 4)


@pytest.mark.timeout(120)
def test_a_pipe_that_nobody_writes_to_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="not a regular file"):
            regular.read(tmp_path / name, 10)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/stdin"])
def test_a_device_is_no_file(device: str) -> None:
    if not Path(device).exists():
        pytest.skip(f"{device} is not on this system")
    with pytest.raises(OSError, match="not a regular file"):
        regular.read(Path(device), 10)


def test_what_is_found_is_said_and_nothing_is_raised(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    found = {
        "file": "a file",
        ".": "a folder",
        "pipe": "neither a file nor a folder",
        "absent": "nothing",
        "file/below": "nothing",
        "\0": "nothing",
        "x" * 300: "File name too long",
    }
    for name, words in found.items():
        path = tmp_path / name
        assert regular.found_at(path) == words
        assert (regular.is_file(path), regular.is_folder(path)) == (words == "a file", words == "a folder")


def test_a_file_of_many_gigabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(50 << 30)
    tracemalloc.start()
    with pytest.raises(OSError, match="larger than"):
        regular.read(path, 1 << 20)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_a_folder_and_nothing_at_all(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        regular.read(tmp_path, 10)
    with pytest.raises(FileNotFoundError):
        regular.read(tmp_path / "absent", 10)


def test_a_write_that_fails_at_the_last_moment_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "r.json").mkdir()
    with pytest.raises(OSError, match=r"r\.json"):
        regular.write_atomically(tmp_path / "r.json", b"content")
    assert [each.name for each in tmp_path.iterdir()] == ["r.json"]


def test_drafts_are_their_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []

    def synced(descriptor: int) -> None:
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))

    monkeypatch.setattr(os, "fsync", synced)
    regular.write_atomically(tmp_path / "x", b"x")
    assert modes == [0o600]
