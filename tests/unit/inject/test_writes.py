"""An experiment can't change a file of the user's."""

from __future__ import annotations

import bz2
import contextlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from trainmark.inject.changes import writes

BEFORE = "the user's"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, outside of the experiment's."""
    for name in ("mine", "copy", "temporary", "cache"):
        (tmp_path / name).mkdir()
    for name in ("model", "old", "log"):
        (tmp_path / "mine" / name).write_text(BEFORE)
    (tmp_path / "copy" / "link").symlink_to(tmp_path / "mine" / "model")
    # thus a mistake in the code can't replace the machine's
    with contextlib.suppress(PermissionError):
        os.mknod(tmp_path / "null", stat.S_IFCHR, os.makedev(1, 3))
        (tmp_path / "null").chmod(0o666)
        monkeypatch.setattr(os, "devnull", str(tmp_path / "null"))
    monkeypatch.chdir(tmp_path / "copy")
    monkeypatch.setenv("TRAINMARK_OBSERVER", str(tmp_path / "copy"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(writes, "_set", monkeypatch.setattr)
    writes.Writes().redirect()
    return tmp_path / "mine"


def _write(path: Path) -> None:
    path.write_text("ours")


def _append(path: Path) -> None:
    with path.open("a") as file:
        file.write("ours")


def _by_descriptor(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(descriptor, b"ours")
    os.close(descriptor)


def _replace(path: Path) -> None:
    Path("new").write_text("ours")
    os.replace("new", path)  # noqa: PTH105


def _move_away(path: Path) -> None:
    shutil.move(str(path), "here")


def _compressed(path: Path) -> None:
    with bz2.open(path, "w") as file:
        file.write(b"ours")


def _hdf5(path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(h5py.File, "__init__", h5py.File.__init__)
        writes.Writes().redirect_hdf5()
        with h5py.File(path, "w") as file:
            file["weights"] = [1, 2]
            assert file["weights"][1] == 2


def _read_and_write(path: Path) -> None:
    with path.open("r+") as file:
        assert file.read() == BEFORE
        file.write("ours")


def _lock(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    os.fchmod(descriptor, 0o600)
    os.close(descriptor)
    assert Path(os.devnull).stat().st_mode & 0o666 == 0o666


def _change_mode_of_what_was_opened(path: Path) -> None:
    with path.open("w") as file:
        os.fchmod(file.fileno(), 0o600)
        file.truncate(3)
        assert not Path(file.name).samefile(os.devnull)
        os.chmod(file.name, 0o400)  # noqa: PTH101
        os.remove(file.name)  # noqa: PTH107


def _copy(path: Path) -> None:
    Path("new").write_text("ours")
    shutil.copy("new", path)


@pytest.mark.parametrize(
    "change",
    [
        _write,
        _append,
        _by_descriptor,
        _replace,
        _move_away,
        _copy,
        _read_and_write,
        _lock,
        _change_mode_of_what_was_opened,
        _compressed,
        _hdf5,
        Path.unlink,
        lambda path: os.truncate(path, 0),
        lambda path: shutil.rmtree(path.parent),
        lambda path: path.rename("here"),
        lambda path: (path.parent / "new").mkdir(),
        lambda path: (path.parent / "new").write_text("ours"),
        lambda _: Path("link").write_text("ours"),
    ],
)
def test_the_users_files_stay_as_they_are(mine: Path, change: Callable[..., object]) -> None:
    change(mine / "model")
    assert sorted(each.name for each in mine.iterdir()) == ["log", "model", "old"]
    assert (mine / "model").read_text() == BEFORE


def test_its_own_folders_can_be_written(mine: Path) -> None:
    for path in (
        Path("model"),
        Path(tempfile.mkdtemp()) / "model",
        mine.parent / "cache" / "model",
    ):
        _write(path)
        _append(path)
        assert path.read_text() == "oursours"
        path.unlink()
        assert not path.exists()


def test_a_compiler_can_load_what_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")
    may_not = writes.Writes().elsewhere
    assert not any(
        map(
            may_not,
            (tmp_path / "home" / ".triton" / "cache" / "a.so", tmp_path / "extensions" / "a.so"),
        )
    )
    assert may_not(tmp_path / "home" / "a.so")
    assert may_not("a.so")  # this is in the working folder


def test_the_users_folder_may_be_inside_one_that_can_be_written(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(mine.parent))
    assert not writes.Writes().elsewhere(mine / "model")
    monkeypatch.setenv("TRAINMARK_ORIGINAL", str(mine))
    may_not = writes.Writes().elsewhere
    assert may_not(mine / "model")
    assert not may_not(mine.parent / "cache" / "model") and not may_not(
        mine.parent / "copy" / "model"
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_nothing_that_saves_a_network_saves_elsewhere(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    model = mine / "model"
    changes = pytest.importorskip("trainmark.inject.changes.torch.beside_steps")
    monkeypatch.setattr(changes.patch, "put", monkeypatch.setattr)
    changes.protect(writes.Writes())
    torch.save({}, model)
    torch.serialization.save({}, model)
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(model))
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), model)
    for traced in (lambda x: x + 1, torch.nn.Linear(1, 1)):
        torch.jit.trace(traced, torch.ones(1)).save(str(model))
    # torch.export.save does this, which imports much
    torch._C.PyTorchFileWriter(str(model)).write_end_of_file()
    assert model.read_text() == BEFORE
    torch.serialization.save({}, "model")
    assert torch.load("model") == {}


def test_a_working_folder_of_the_users_is_not_its_own(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mine)  # as a script does that begins with cd
    assert writes.Writes().elsewhere("model")


def test_a_large_file_is_not_copied_to_be_changed(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "_LARGEST_COPY", 2)
    with pytest.raises(PermissionError, match="too large to copy; open it with mode 'r'"):
        _read_and_write(mine / "model")


def _save_beside_and_rename(what: str, filename: Path | str) -> None:
    """Save as safetensors does, by system calls that Python does not see."""
    command = [
        "sh",
        "-c",
        'printf %s "$1" > "$2.tmp" && mv -f "$2.tmp" "$2"',
        "sh",
        what,
        os.fspath(filename),
    ]
    subprocess.run(command, check=True)


def test_a_saver_that_renames_replaces_no_device(mine: Path) -> None:
    device = mine.parent / "copy" / "device"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root can make a device")
    saved = writes.Writes().to_nowhere(_save_beside_and_rename, 1)
    saved("ours", mine / "model")
    saved("ours", filename=mine / "model")
    saved("ours", device)
    assert stat.S_ISCHR(device.stat().st_mode)
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    assert (mine / "model").read_text() == BEFORE


def test_a_device_is_not_moved_removed_or_changed(mine: Path) -> None:
    device = mine.parent / "copy" / "device"
    try:
        os.mknod(device, stat.S_IFCHR, os.makedev(1, 3))
        device.chmod(0o600)
    except PermissionError:
        pytest.skip("only root can make a device")
    Path("new").write_text("ours")
    shutil.copy("new", device)
    os.replace("new", device)  # noqa: PTH105
    device.unlink()
    device.write_text("ours")
    assert stat.S_ISCHR(device.stat().st_mode)


def test_a_link_of_the_users_stays(mine: Path) -> None:
    """The link leads to a folder that may be written to, but lies in one that may not."""
    (mine.parent / "cache" / "model").write_text(BEFORE)
    link = mine / "link"
    subprocess.run(["ln", "-s", mine.parent / "cache" / "model", link], check=True)
    writes.Writes().to_nowhere(_save_beside_and_rename, 1)("ours", link)
    Path("new").write_text("ours")
    os.replace("new", link)  # noqa: PTH105
    link.unlink()
    assert link.is_symlink()
    assert link.read_text() == BEFORE


def test_a_folder_for_temporary_files_may_be_the_users(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to_nowhere = writes.Writes().to_nowhere(lambda what, f: Path(f).write_text(what), 1)
    monkeypatch.setattr(tempfile, "tempdir", str(mine))  # a script may do this
    to_nowhere("ours", mine / "model")
    assert sorted(each.name for each in mine.iterdir()) == ["log", "model", "old"]


def test_safetensors_saves_nothing_elsewhere(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = pytest.importorskip("numpy")
    safetensors = pytest.importorskip("safetensors.numpy")
    monkeypatch.setattr(writes, "_set", monkeypatch.setattr)
    writes.Writes().redirect_safetensors()
    safetensors.save_file({"weights": numpy.ones(3)}, str(mine / "model"))
    safetensors.save_file({"weights": numpy.ones(3)}, "model")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    assert (mine / "model").read_text() == BEFORE
    assert safetensors.load_file("model")["weights"].sum() == 3


def test_a_save_goes_nowhere(mine: Path) -> None:
    saved = writes.Writes().to_nowhere(lambda what, f: Path(f).write_text(what), 1)
    saved("ours", mine / "model")
    saved("ours", f=mine / "model")
    saved("ours", "model")
    assert (mine / "model").read_text() == BEFORE
    assert Path("model").read_text() == "ours"
