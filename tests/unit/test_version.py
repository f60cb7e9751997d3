"""The version is git's: what a clone says of itself is what setuptools-scm would build."""

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
OPTIONS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools_scm"]


def git(clone: Path, *words: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, "-C", clone, *words], check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    git(tmp_path, "init")
    (tmp_path / "file").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    return tmp_path


def built(clone: Path) -> str:
    scm = pytest.importorskip("setuptools_scm")
    found: str = scm.get_version(
        root=clone,
        version_scheme=OPTIONS["version_scheme"],
        fallback_version=OPTIONS["fallback_version"],
    )
    return found


def test_it_is_what_would_be_built(clone: Path) -> None:
    def both() -> str:
        assert version.version_of(clone) == built(clone)
        return version.version_of(clone)

    assert both().startswith("0.1.0.dev1+g")
    git(clone, "tag", "v0.1.0")
    assert both() == "0.1.0"
    git(clone, "commit", "--allow-empty", "-m", "second")
    assert both().startswith("0.1.0.post1.dev1+g")
    (clone / "file").write_text("2")
    assert ".d20" in both()
    git(clone, "commit", "-am", "third")
    git(clone, "tag", "v0.2.0rc1")
    assert both() == "0.2.0rc1"


def test_a_hook_of_another_repository_changes_nothing(
    clone: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = version.version_of(clone)
    other = tmp_path_factory.mktemp("other")
    git(other, "init")
    git(other, "commit", "--allow-empty", "-m", "first")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert version.version_of(clone) == mine


def test_without_git_nothing_is_guessed(
    tmp_path: Path, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert version.version_of(clone) == version.UNKNOWN


def test_the_module_and_the_command_line_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"trainmark {trainmark.__version__}\n"
    assert trainmark.__version__ == version.version()


def test_what_a_build_wrote_down_is_said_outside_a_clone(tmp_path: Path) -> None:
    for name in ("__init__", "version"):
        (tmp_path / "trainmark").mkdir(exist_ok=True)
        (tmp_path / "trainmark" / f"{name}.py").write_text(
            (ROOT / "src/trainmark" / f"{name}.py").read_text()
        )

    def said() -> str:
        code = "import trainmark; print(trainmark.__version__)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    assert said() == version.UNKNOWN
    (tmp_path / "trainmark" / "_version.py").write_text('VERSION = "7.8.9"')
    assert said() == "7.8.9"
