from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import trainmark
from trainmark.scratch import compile_cache, kept_folder, scratch_folder

PACKAGE = Path(trainmark.__file__).parent

OWNER = """
import os, signal, sys
from pathlib import Path
from trainmark.scratch import scratch_folder
with scratch_folder(Path(sys.argv[1])) as folder:
    Path(folder, "socket").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def age(folder: Path) -> None:
    """Make it an hour old."""
    then = folder.stat().st_mtime - 3600
    os.utime(folder, (then, then))


COMMAND = """
from trainmark.scratch import compile_cache
assert compile_cache() == compile_cache()
print(compile_cache())
"""


def test_a_command_has_one_cache_removed_at_its_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMMAND], capture_output=True, text=True, check=True
    )
    folder = Path(done.stdout.strip())
    assert folder.is_absolute() and not folder.exists()
    assert Path(compile_cache()).is_dir() and Path(compile_cache()) != folder


def test_a_scratch_folder_is_removed_with_its_owner(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        Path(folder, "socket").touch()
    assert not list(tmp_path.iterdir())


def test_a_folder_of_a_killed_owner_is_removed_by_the_next(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", OWNER, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    with scratch_folder(tmp_path):
        assert left.exists(), "it is so young that its owner may be about to lock it"
    age(left)
    with scratch_folder(tmp_path):
        assert not left.exists()


def test_old_scratch_in_use_and_other_folders_stay(tmp_path: Path) -> None:
    other = tmp_path / "trainmark-results"
    other.mkdir()
    age(other)
    with scratch_folder(tmp_path) as folder:
        age(Path(folder))
        with scratch_folder(tmp_path):
            assert Path(folder).is_dir()
    assert other.is_dir()


def test_a_kept_folder_is_never_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kept = kept_folder()
    age(kept)
    with scratch_folder(tmp_path):
        assert kept.is_dir()


@pytest.mark.parametrize(
    "made", ["mkdtemp()", "TemporaryDirectory()", "NamedTemporaryFile()", "mktemp()"]
)
def test_the_lint_forbids_temporary_folders_elsewhere(made: str) -> None:
    text = f'"""A module."""\n\nimport tempfile\n\nPLACE = tempfile.{made}\n'
    ruff = [sys.executable, "-m", "ruff", "check", "--output-format", "concise"]
    for file, is_forbidden in (("study/made_up.py", True), ("scratch.py", False)):
        words = [*ruff, "--stdin-filename", str(PACKAGE / file), "-"]
        found = subprocess.run(words, input=text, capture_output=True, text=True)
        assert ("TID251" in found.stdout) == is_forbidden, found.stdout


def test_removing_a_folder_changes_nothing_that_links_lead_to() -> None:
    script = (
        "import fcntl, os, shutil, tempfile\n"  # before it may not read the interpreter
        "from pathlib import Path\n"
        "from trainmark.scratch import scratch_folder\n"
        "if os.getuid() == 0: os.setuid(65534)\n"  # root may remove everything
        "users = Path(tempfile.mkdtemp()) / 'model'\n"
        "users.touch(0o644)\n"
        "with scratch_folder(users.parent) as folder:\n"
        "    copy = Path(folder) / 'copy'\n"
        "    copy.mkdir()\n"
        "    (copy / 'model').symlink_to(users)\n"
        "    (copy / 'closed').mkdir(0)\n"
        "    copy.chmod(0o555)\n"
        "print(oct(users.stat().st_mode), os.path.exists(folder))\n"
        "shutil.rmtree(users.parent)\n"
    )
    words = [sys.executable, "-c", script]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert found.stdout == "0o100644 False\n", found.stderr
