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
def test_a_pipe_without_a_writer_does_not_keep_it_waiting(tmp_path: Path) -> None:
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


def test_the_description_names_what_is_found_and_raises_nothing(tmp_path: Path) -> None:
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
        assert (regular.is_file(path), regular.is_folder(path)) == (
            words == "a file",
            words == "a folder",
        )


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


def test_a_write_that_fails_at_the_end_leaves_no_file(tmp_path: Path) -> None:
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


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_a_new_file_is_readable_by_all(tmp_path: Path) -> None:
    regular.write(tmp_path / "new", b"new")
    assert (tmp_path / "new").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o644


def test_a_file_keeps_its_mode_and_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a long old content")
    path.chmod(0o600)
    with path.open("rb") as reader:
        regular.write(path, b"new")
        assert reader.read() == b"a long old content"
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    os.chown(path, 12, 34)
    regular.write(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12, 34)


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_its_target_is_written(tmp_path: Path, exists: bool) -> None:
    target = tmp_path / "folder" / "target"
    target.parent.mkdir()
    if exists:
        target.touch(0o600)
    (tmp_path / "second").symlink_to("folder/target")
    (tmp_path / "first").symlink_to("second")
    regular.write(tmp_path / "first", b"new")
    assert target.read_bytes() == b"new"
    assert (tmp_path / "first").readlink() == Path("second")
    assert (tmp_path / "second").readlink() == Path("folder/target")
    assert stat.S_IMODE(target.stat().st_mode) == (0o600 if exists else 0o644)
    assert _names(target.parent) == ["target"]


def test_links_in_a_circle_and_folders_are_errors(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "lost").symlink_to("absent/file")
    for name, error in (("a", "symbolic links"), ("lost", "No such file"), (".", "Is a directory")):
        with pytest.raises(OSError, match=error):
            regular.write(tmp_path / name, b"new")
    assert _names(tmp_path) == ["a", "b", "lost"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_stays_a_device(tmp_path: Path) -> None:
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("this container has no right to make a device")
    (tmp_path / "link").symlink_to(device)
    regular.write(device, b"new")
    regular.write(tmp_path / "link", b"new")
    assert stat.S_ISCHR(device.stat().st_mode)
    assert (tmp_path / "link").is_symlink()
    assert _names(tmp_path) == ["link", "null"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    regular.write(pipe, b"new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="this system has no /dev/fd")
def test_an_open_file_is_written_at_its_position(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb", buffering=0) as log:
        log.write(b"before, ")
        regular.write(Path(f"/dev/fd/{log.fileno()}"), b"new")
        log.write(b", after")
    assert path.read_bytes() == b"before, new, after"
    with pytest.raises(OSError, match="Bad file descriptor"):
        regular.write(Path("/dev/fd/999"), b"new")


def test_what_can_be_written_is_known_beforehand(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("target")
    (tmp_path / "lost").symlink_to("absent/file")
    for name in ("file", "new", "dangling", os.devnull):
        assert regular.can_write(tmp_path / name)
    for name in (".", "absent/file", "lost", "file/below", "x" * 300 + "/file"):
        assert not regular.can_write(tmp_path / name)
