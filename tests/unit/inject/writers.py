"""Ways to write to a file, and what the script that does it must see afterwards.

    python writers.py FOLDER

``FOLDER/NAME/model`` has :data:`BEFORE`, for the name of each way.
"""

from __future__ import annotations

import bz2
import contextlib
import fileinput
import multiprocessing
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BEFORE = "the user's"
WRITERS: dict[str, Callable[[Path], object]] = {}


def writer(does: Callable[[Path], object]) -> Callable[[Path], object]:
    """Register a function that is given the file, and uses its folder."""
    WRITERS[does.__name__] = does
    return does


def names(path: Path) -> set[str]:
    """The entries of the file's folder."""
    return {each.name for each in path.parent.iterdir()}


@writer
def write(path: Path) -> None:
    path.write_text("ours")
    assert path.read_text() == "ours"


@writer
def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("+")
    assert path.read_text() == BEFORE + "+"


@writer
def update(path: Path) -> None:
    with path.open("r+") as file:
        file.write("T")
    assert path.read_text() == "T" + BEFORE[1:]


@writer
def by_descriptor(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    os.write(descriptor, b"ours")
    os.close(descriptor)
    assert path.read_text() == "ours"


@writer
def lock(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    os.fchmod(descriptor, 0o600)
    os.close(descriptor)
    assert path.read_text() == BEFORE


@writer
def replace(path: Path) -> None:
    Path("new").write_text("ours")
    Path("new").replace(path)
    assert path.read_text() == "ours"


@writer
def by_folder_descriptor(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    descriptor = os.open("model", os.O_WRONLY | os.O_TRUNC, dir_fd=folder)
    os.write(descriptor, b"ours")
    os.close(descriptor)
    assert os.stat("model", dir_fd=folder).st_size == 4
    os.rename("model", "moved", src_dir_fd=folder, dst_dir_fd=folder)
    os.symlink("moved", "latest", dir_fd=folder)
    os.mkdir("made", dir_fd=folder)
    assert names(path) == {"made", "moved", "latest"}
    os.unlink("moved", dir_fd=folder)
    assert names(path) == {"made", "latest"}
    os.close(folder)


@writer
def append_in_threads(path: Path) -> None:
    def append_one(_: int) -> None:
        with path.open("a") as file:
            file.write("+")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(append_one, range(64)))
    assert path.read_text() == BEFORE + "+" * 64


@writer
def move_away(path: Path) -> None:
    mode = path.stat().st_mode
    shutil.move(str(path), "here")
    assert Path("here").stat().st_mode == mode
    assert not path.exists()
    assert Path("here").read_text() == BEFORE


@writer
def rename_beside(path: Path) -> None:
    path.rename(path.with_name("old"))
    assert names(path) == {"old"}
    assert path.with_name("old").read_text() == BEFORE


@writer
def copy_over(path: Path) -> None:
    Path("new").write_text("ours")
    shutil.copy("new", path)
    assert path.read_text() == "ours"


@writer
def compress(path: Path) -> None:
    with bz2.open(path, "w") as file:
        file.write(b"ours")
    with bz2.open(path) as file:
        assert file.read() == b"ours"


@writer
def remove(path: Path) -> None:
    path.unlink()
    assert not path.exists()
    assert names(path) == set()


@writer
def remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent)
    assert not path.exists()


@writer
def remove_a_full_folder(path: Path) -> None:
    for does in (os.remove, os.rmdir):
        with contextlib.suppress(OSError):
            does(path.parent)
            raise AssertionError("a full folder was removed")
    path.with_name("new").write_text("ours")
    path.with_name("new").unlink()
    with contextlib.suppress(OSError):
        path.parent.rmdir()
        raise AssertionError("a full folder was removed")


@writer
def truncate(path: Path) -> None:
    os.truncate(path, 3)
    assert path.read_text() == BEFORE[:3]


@writer
def make_folders(path: Path) -> None:
    made = path.with_name("a") / "b"
    made.mkdir(parents=True)
    (made / "c").write_text("ours")
    assert [each.name for each in path.parent.glob("a/*/c")] == ["c"]
    with contextlib.suppress(FileExistsError):
        made.mkdir()
        raise AssertionError("a folder was made twice")


@writer
def link(path: Path) -> None:
    path.with_name("latest").symlink_to("model")
    assert path.with_name("latest").readlink() == Path("model")


@writer
def read_through_a_new_link(path: Path) -> None:
    latest = path.with_name("latest")
    latest.symlink_to("model")
    assert latest.read_text() == BEFORE
    path.write_text("ours")
    assert latest.read_text() == "ours"
    assert latest.is_symlink()


@writer
def write_through_a_new_link(path: Path) -> None:
    latest = path.with_name("latest")
    latest.symlink_to(path.absolute())
    latest.write_text("ours")
    assert path.read_text() == "ours"


@writer
def write_through_a_link_to_a_folder(path: Path) -> None:
    alias = path.with_name("alias")
    alias.symlink_to(path.parent.absolute())
    (alias / "model").write_text("ours")
    (alias / "new").write_text("ours")
    assert path.read_text() == "ours"
    assert names(path) == {"alias", "model", "new"}


@writer
def write_through_a_link_to_the_copy(path: Path) -> None:
    alias = path.with_name("alias")
    alias.symlink_to(Path.cwd())
    (alias / "linked").mkdir(exist_ok=True)
    (alias / "linked" / "new").write_text("ours")
    assert Path("linked/new").read_text() == "ours"
    assert [each.name for each in (alias / "linked").iterdir()] == ["new"]
    (alias / "linked" / "new").unlink()
    assert not Path("linked/new").exists()


@writer
def replace_a_link(path: Path) -> None:
    path.with_name("new").write_text("ours")
    path.with_name("latest").symlink_to("model")
    path.with_name("part").symlink_to("new")
    path.with_name("part").replace(path.with_name("latest"))
    assert path.with_name("latest").read_text() == "ours"


@writer
def link_hard(path: Path) -> None:
    os.link(path, "here")
    Path("here").write_text("ours")


@writer
def change_attributes(path: Path) -> None:
    path.chmod(0o600)
    os.utime(path, (1, 1))
    with path.open() as file:
        os.fchmod(file.fileno(), 0o600)
        os.chmod(file.fileno(), 0o600)  # noqa: PTH101  (a descriptor)


@writer
def make_exclusively(path: Path) -> None:
    with path.with_name("new").open("x") as file:
        file.write("ours")
    with contextlib.suppress(FileExistsError):
        path.open("x")
        raise AssertionError("an existing file was made")


@writer
def change_in_place(path: Path) -> None:
    with fileinput.input(str(path), inplace=True) as lines:
        for line in lines:
            sys.stdout.write(line.upper())
    assert path.read_text() == BEFORE.upper()


@writer
def walk(path: Path) -> None:
    path.with_name("new").write_text("ours")
    _, _, files = next(os.walk(path.parent))
    assert set(files) == {"model", "new"}
    _, _, files, _ = next(os.fwalk(path.parent))
    assert set(files) == {"model", "new"}


@writer
def scan(path: Path) -> None:
    path.with_name("new").write_text("ours")
    with os.scandir(path.parent) as entries:
        found = {Path(entry.path): entry.is_file() for entry in entries}
    assert found == {path: True, path.with_name("new"): True}


@writer
def change_folder(path: Path) -> None:
    os.chdir(path.parent)
    Path("model").write_text("ours")
    assert Path("model").read_text() == "ours"


@writer
def remove_after_a_change_of_folder(path: Path) -> None:
    path.with_name("new").write_text("ours")
    os.chdir(path.parent)
    Path("model").unlink()
    assert {each.name for each in Path().iterdir()} == {"new"}


@writer
def change_folder_by_descriptor(path: Path) -> None:
    path.with_name("new").write_text("ours")
    descriptor = os.open(path.parent, os.O_RDONLY)
    os.fchdir(descriptor)
    os.close(descriptor)
    Path("model").write_text("ours")
    assert Path("model").read_text() == "ours"


@writer
def remove_in_a_child(path: Path) -> None:
    child = multiprocessing.get_context("fork").Process(target=os.remove, args=(path,))
    child.start()
    child.join()
    assert child.exitcode == 0


if __name__ == "__main__":
    here = Path.cwd()
    failed = 0
    for name, does in WRITERS.items():
        os.chdir(here)
        Path("here").unlink(missing_ok=True)
        try:
            does(Path(sys.argv[1]) / name / "model")
        except (AssertionError, OSError):
            sys.stderr.write(f"{name}: {traceback.format_exc()}")
            failed += 1
    sys.exit(min(failed, 1))
