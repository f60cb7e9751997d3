"""A copy of the working folder for an experiment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainmark.execute.protocol.copies import place_of_copy, without_copy
from trainmark.execute.worker import script, working_copy


def test_small_files_are_copied_and_the_rest_is_linked(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    copy = tmp_path / "copy"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "a.py").write_text("1")
    (folder / "large").write_bytes(bytes(working_copy._LARGE_BYTES + 1))
    os.mkfifo(folder / "pipe")
    working_copy.linked(folder, copy)
    assert (copy / "package" / "a.py").read_text() == "1"
    assert {each.name for each in copy.iterdir() if each.is_symlink()} == {"large", "pipe"}


def test_files_of_a_folder_are_copied_before_those_of_subfolders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_copy, "_MOST_FILES", 1)
    folder = tmp_path / "mine"
    copy = tmp_path / "copy"
    for number in range(9):
        (folder / f"{number}").mkdir(parents=True)
        (folder / f"{number}" / "a").touch()
    (folder / "results.db").touch()
    working_copy.linked(folder, copy)
    assert not (copy / "results.db").is_symlink()
    assert all((copy / f"{number}").is_symlink() for number in range(9))


def test_folders_are_linked_once_there_are_many_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder such as /tmp may have many folders with files that are too large to be copied."""
    monkeypatch.setattr(working_copy, "_LARGE_BYTES", 0)
    monkeypatch.setattr(working_copy, "_MOST_LINKS", 3)
    folder = tmp_path / "mine"
    copy = tmp_path / "copy"
    for number in range(9):
        (folder / f"{number}").mkdir(parents=True)
        (folder / f"{number}" / "a").write_text("1")
    working_copy.linked(folder, copy)
    linked = [(copy / f"{number}").is_symlink() for number in range(9)]
    assert sorted(linked) == [False] * 3 + [True] * 6


def test_a_relative_link_leads_to_the_same_file_in_a_copy(tmp_path: Path) -> None:
    (tmp_path / "home" / "mine").mkdir(parents=True)
    (tmp_path / "home" / "data").write_text("1")
    (tmp_path / "home" / "mine" / "link").symlink_to("../data")
    copy = working_copy.linked(tmp_path / "home" / "mine", tmp_path / "copy", whole=True)
    assert (copy / "link").read_text() == "1"


def test_a_link_that_stays_in_the_folder_stays_in_the_copy(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "run").write_text("1")
    (folder / "log").symlink_to("logs/run")
    (folder / "logs" / "up").symlink_to(folder / "logs" / "run")
    (folder / "loop").symlink_to("loop")
    copy = working_copy.linked(folder, tmp_path / "copy", whole=True)
    for name in ("log", "logs/up"):
        assert (copy / name).resolve() == copy / "logs" / "run"


def test_of_a_whole_copy_only_packages_and_pipes_are_linked(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    copy = tmp_path / "copy"
    for name in ("many", ".git", ".venv"):
        (folder / name).mkdir(parents=True)
    for number in range(working_copy._MANY_ENTRIES + 1):
        (folder / "many" / str(number)).touch()
    (folder / "large").write_bytes(bytes(working_copy._LARGE_BYTES + 1))
    os.mkfifo(folder / "pipe")
    working_copy.linked(folder, copy, whole=True)
    assert {each.name: each.is_symlink() for each in copy.iterdir()} == {
        "many": False, "large": False, "pipe": True, ".venv": True,
    }  # fmt: skip
    assert len(list((copy / "many").iterdir())) == working_copy._MANY_ENTRIES + 1


def test_scratch_folders_are_not_copied_into_a_working_copy(tmp_path: Path) -> None:
    (tmp_path / "mine.py").touch()
    copy = tmp_path / "trainmark-scratch-1" / "copy" / "of"
    copy.parent.mkdir(parents=True)
    (tmp_path / "trainmark-scratch-2").mkdir()
    working_copy.linked(tmp_path, copy)
    assert [each.name for each in copy.iterdir()] == ["mine.py"]


def test_neighbours_of_the_folder_and_of_those_above_it_are_linked(tmp_path: Path) -> None:
    top = tmp_path / "a" / "b" / "c" / "d"
    folder = top / "home" / "mine"
    for each in (folder, top / "home" / "data", top / "home" / "trainmark-scratch-1", top / "data"):
        each.mkdir(parents=True, exist_ok=True)
        (each / "which").write_text(str(each))
    place = place_of_copy(folder, tmp_path / "scratch")
    place.copy.mkdir(parents=True)
    working_copy.link_neighbours(folder, place)
    for path in ("data", "../data"):
        found = place.copy / ".." / path / "which"
        assert found.read_text() == os.path.normpath(folder / ".." / path)
    assert {each.name for each in place.copy.parent.iterdir()} == {"mine", "data"}
    assert place.copy.relative_to(place.root) == Path("c", "d", "home", "mine")


def test_a_folder_of_the_root_has_the_root_above_its_copy(tmp_path: Path) -> None:
    place = place_of_copy(Path("/mine"), tmp_path)
    assert place.copy == place.root / "mine"


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ('File "/tmp/trainmark-scratch-1/copy-1/mine/a/b.py", line 1', 'File "a/b.py", line 1'),
        ("/tmp/trainmark-scratch-1/copy-3/c/d/mine/b.py: no", "b.py: no"),
        ("in /tmp/trainmark-scratch-1/copy-3/c/d", "in /tmp/trainmark-scratch-1/copy-3/c/d"),
    ],
)
def test_a_user_reads_paths_in_the_folder_and_not_in_the_copy(printed: str, shown: str) -> None:
    assert without_copy(printed) == shown


@pytest.mark.parametrize(("confined", "beside"), [(True, {"mine", "data"}), (False, {"mine"})])
def test_a_command_that_can_write_through_links_gets_no_links(
    tmp_path: Path, confined: bool, beside: set[str]
) -> None:
    for name in ("home/mine", "home/data", "scratch"):
        (tmp_path / name).mkdir(parents=True)
    folder = tmp_path / "home" / "mine"
    place = place_of_copy(folder, tmp_path / "scratch")
    script._copied(folder, place, confined=confined)
    assert {each.name for each in place.copy.parent.iterdir()} == beside
