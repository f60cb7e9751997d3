"""The lock of a results folder: two runs into one folder are refused, whoever starts them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trainmark.errors import OutputError
from trainmark.record.folder_lock import path_of
from trainmark.record.store import Store
from trainmark.scratch import shared_top

HOLD = """
import fcntl, os, sys
from pathlib import Path
import trainmark.masking  # another user may not be able to read it
from trainmark.record.store import Store

if len(sys.argv) > 2:
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
with Store(Path(sys.argv[1])).locked():
    print("held", flush=True)
    sys.stdin.read()
"""
STRANGER = 65534
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


def hold_words(folder: Path, *user: int) -> list[str]:
    """The command of a process, of the given user, that holds the lock of ``folder``."""
    return [sys.executable, "-c", HOLD, str(folder), *map(str, user)]


@contextlib.contextmanager
def held(folder: Path, *user: int) -> Iterator[subprocess.Popen[bytes]]:
    """Such a process."""
    with subprocess.Popen(
        hold_words(folder, *user), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            yield process
        finally:
            process.kill()


def refused(folder: Path) -> str:
    """The error of a second run into ``folder``."""
    with pytest.raises(OutputError) as raised, Store(folder).locked():
        pytest.fail("two processes hold one folder")
    return str(raised.value)


def test_the_error_names_the_process_that_holds_it(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with held(folder) as process:
        assert f"another trainmark is running into {folder}" in refused(folder)
        assert f"found process {process.pid}" in refused(folder)
        with Store(tmp_path / "other").locked():
            pass
    with Store(folder).locked():  # the lock ends with its process, and its stale id is replaced
        assert path_of(folder).read_text() == str(os.getpid())


def test_it_is_free_again_after_a_failure(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(ZeroDivisionError), store.locked():
        raise ZeroDivisionError
    with store.locked(), pytest.raises(OutputError), store.locked():
        pass
    with store.locked():
        pass


def test_it_leaves_nothing_in_the_folder_nor_elsewhere(tmp_path: Path) -> None:
    with Store(tmp_path).locked():
        assert not list(tmp_path.iterdir())
        assert path_of(tmp_path).exists()
    assert not path_of(tmp_path).exists()


def test_what_killed_commands_have_left_goes_with_the_next(tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    with held(killed):
        assert path_of(killed).exists()
    assert path_of(killed).exists()
    with held(tmp_path / "running") as process, Store(tmp_path / "next").locked():
        assert not path_of(killed).exists()
        assert path_of(tmp_path / "running").read_text() == str(process.pid)


def test_another_path_to_the_folder_is_the_same_folder(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    with held(folder) as process:
        assert str(process.pid) in refused(tmp_path / "link")
        assert str(process.pid) in refused(tmp_path / "link" / ".." / "out")


def test_a_folder_removed_during_a_run_stays_locked(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with held(folder) as process:
        folder.rmdir()
        assert str(process.pid) in refused(folder)


def test_another_container_is_seen_by_the_folder_itself(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)  # as by a process that has another /tmp
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert "process unknown" in refused(tmp_path)
    os.close(descriptor)
    with Store(tmp_path).locked():
        pass


def test_a_folder_that_knows_no_locks_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock

    def flock(file: int, how: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(errno.EBADF, "as NFS answers")
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with held(tmp_path / "other"), Store(tmp_path).locked():
        assert str(os.getpid()) in refused(tmp_path)


def test_without_any_locks_the_error_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(file: int, how: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    error = refused(tmp_path)
    assert "can't be locked" in error and "Function not implemented" in error
    assert str(path_of(tmp_path)) in error


@needs_root
def test_another_user_is_refused_too(tmp_path: Path) -> None:
    shared = Path(f"{path_of(tmp_path)}-shared")  # pytest's folders are their owner's alone
    shared.mkdir()
    shared.chmod(0o777)
    try:
        with held(shared, STRANGER) as process:
            assert f"process {process.pid}" in refused(shared)
        with held(shared) as process:
            assert stat.S_IMODE(path_of(shared).stat().st_mode) == 0o666
        with held(shared, STRANGER) as process:  # root's file is left, and it can't remove that
            assert path_of(shared).owner() == "root"
            assert f"process {process.pid}" in refused(shared)
    finally:
        path_of(shared).unlink(missing_ok=True)
        shared.rmdir()


def plant_link(path: Path, precious: Path) -> None:
    path.symlink_to(precious)


def plant_hard_link(path: Path, precious: Path) -> None:
    path.hardlink_to(precious)


def plant_folder(path: Path, precious: Path) -> None:
    path.mkdir()


def plant_pipe(path: Path, precious: Path) -> None:
    os.mkfifo(path)
    path.chmod(0o666)


PLANTS = [plant_link, plant_hard_link, plant_folder, plant_pipe]


@needs_root
@pytest.mark.parametrize("plant", PLANTS)
def test_what_a_stranger_puts_there_is_not_written(plant: Callable[[Path, Path], None]) -> None:
    with tempfile.TemporaryDirectory(dir=shared_top()) as place:  # pytest's is its owner's alone
        folder = Path(place)
        folder.chmod(0o777)
        precious = folder / "precious"  # on the same disk, as a hard link needs
        precious.write_text("my weights")
        precious.chmod(0o666)
        path = path_of(folder)
        for _ in range(5):
            plant(path, precious)
            planted = path.lstat().st_ino
            process = subprocess.run(hold_words(folder, STRANGER), capture_output=True, text=True)
            # A command of another test may have taken it for an abandoned lock, and removed it.
            if os.path.lexists(path) and path.lstat().st_ino == planted:
                break
        try:
            assert "can't be used" in process.stderr and str(path) in process.stderr
            assert precious.read_text() == "my weights"
        finally:
            if plant is plant_folder:
                path.rmdir()
            else:
                path.unlink()


@pytest.mark.parametrize("plant", PLANTS)
def test_what_could_be_mine_does_no_harm_either(
    plant: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    precious = Path(f"{path_of(tmp_path)}-precious")
    precious.write_text("my weights")
    path = path_of(tmp_path)
    plant(path, precious)
    try:
        with contextlib.suppress(OutputError), Store(tmp_path).locked():
            pass
        assert precious.read_text() == "my weights"
    finally:
        precious.unlink()
        if plant is plant_folder:
            path.rmdir()
        else:
            path.unlink(missing_ok=True)


def test_an_unreadable_process_id_is_unknown(tmp_path: Path) -> None:
    with Store(tmp_path).locked():
        path_of(tmp_path).write_text("\x1b[2J 12")
        assert "process unknown" in refused(tmp_path)


def test_a_lock_of_an_earlier_version_does_no_harm(tmp_path: Path) -> None:
    old = tmp_path / ".trainmark.lock"
    old.write_text("4711")
    with Store(tmp_path).locked():
        pass
    assert old.read_text() == "4711"
