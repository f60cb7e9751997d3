"""The version, with the commit in a clone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

import trainmark
from trainmark import version
from trainmark.cli.main import run

ROOT = Path(__file__).parents[2]


def commit(clone: Path) -> None:
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(clone), *identity, *words], check=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("1")
    commit(tmp_path)
    return tmp_path


def test_the_version_is_that_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == version.VERSION
    assert f"version: {version.VERSION}\n" in (ROOT / "CITATION.cff").read_text()


def test_a_clone_names_its_commit(clone: Path) -> None:
    head = version.git(clone, "rev-parse", "HEAD")
    assert version.version_of(clone) == f"{version.VERSION}+g{head[:9]}"


def test_changed_files_are_marked(clone: Path) -> None:
    (clone / "file").write_text("2")
    assert version.version_of(clone).endswith(".dirty")


def test_a_tag_changes_nothing(clone: Path) -> None:
    before = version.version_of(clone)
    version.git(clone, "tag", "v7.8.9")
    assert version.version_of(clone) == before


def test_the_repository_of_a_git_hook_is_not_asked(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = version.version_of(clone)
    monkeypatch.setenv("GIT_DIR", str(ROOT / ".git"))
    assert version.version_of(clone) == before


def test_without_an_answer_of_git_the_commit_is_unknown(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert version.version_of(clone) == f"{version.VERSION}+unknown"


def test_the_module_and_the_command_line_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"trainmark {trainmark.__version__}\n"
    assert trainmark.__version__ == version.version()


def test_outside_a_clone_there_is_no_commit(tmp_path: Path) -> None:
    package = tmp_path / "trainmark"
    package.mkdir()
    for name in ("__init__.py", "version.py"):
        (package / name).write_text((ROOT / "src" / "trainmark" / name).read_text())
    done = subprocess.run(
        [sys.executable, "-c", "import trainmark; print(trainmark.__version__)"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == version.VERSION
