"""What the first complete run has written in its copy is kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from trainmark.execute.worker.outputs import keep_outputs


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path, Path, Path]:
    """The user's folder, its copy after a run, what was written elsewhere, and the target."""
    original = tmp_path / "original"
    original.mkdir()
    (original / "train.py").write_text("1")
    (original / "log").write_text("before")
    (original / "large").write_text("data")
    copy = tmp_path / "copy"
    shutil.copytree(original, copy)
    (copy / "large").unlink()
    (copy / "large").symlink_to(original / "large")
    (copy / "log").write_text("before and after")
    (copy / "runs").mkdir()
    (copy / "runs" / "weights").write_text("w")
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "tmp").mkdir(parents=True)
    (elsewhere / "tmp" / "checkpoint").write_text("c")
    return original, copy, elsewhere, tmp_path / "kept"


def contents(folder: Path) -> dict[str, str]:
    """Return the text of every file below a folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in found}


def test_new_and_changed_files_are_kept(places: tuple[Path, Path, Path, Path]) -> None:
    keep_outputs(*places)
    assert contents(places[3]) == {
        "log": "before and after",
        "runs/weights": "w",
        "outside/tmp/checkpoint": "c",
    }


def test_only_the_first_run_is_kept(places: tuple[Path, Path, Path, Path]) -> None:
    keep_outputs(*places)
    first = contents(places[3])
    (places[1] / "later").write_text("2")
    keep_outputs(*places)
    assert contents(places[3]) == first


def test_a_run_that_writes_nothing_leaves_no_folder(tmp_path: Path) -> None:
    for name in ("original", "copy"):
        (tmp_path / name).mkdir()
    keep_outputs(
        tmp_path / "original", tmp_path / "copy", tmp_path / "elsewhere", tmp_path / "kept"
    )
    assert {path.name for path in tmp_path.iterdir()} == {"copy", "original"}


def test_a_file_named_outside_is_kept_as_well(places: tuple[Path, Path, Path, Path]) -> None:
    (places[1] / "outside").write_text("a file")
    keep_outputs(*places)
    kept = contents(places[3])
    assert (kept["outside"], kept["outside-/tmp/checkpoint"]) == ("a file", "c")
