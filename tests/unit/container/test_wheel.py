"""The running code as a wheel, and where it comes from."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path
from typing import NoReturn

import pytest

import trainmark
from tests.unit.container.samples import an_origin
from trainmark.container import origin as origins
from trainmark.container.wheel import pack, wheel_name
from trainmark.errors import UsageError
from trainmark.workload import catalog


@pytest.fixture(scope="module")
def wheel() -> bytes:
    return pack(an_origin())


def test_pip_installs_it_and_it_runs(wheel: bytes, tmp_path: Path) -> None:
    file = tmp_path / wheel_name(an_origin())
    file.write_bytes(wheel)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*pip, "--target", str(tmp_path / "there"), str(file)], check=True, capture_output=True)
    code = "import trainmark; from trainmark.workload import catalog; print(trainmark.__file__, len(catalog.names()))"
    answer = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(tmp_path / "there")}, capture_output=True, text=True
    )
    assert answer.stdout.startswith(str(tmp_path / "there")), answer.stderr
    assert answer.stdout.endswith(f" {len(catalog.names())}\n")
    assert "trainmark.cli.main" in (tmp_path / "there/bin/trainmark").read_text()


def test_it_holds_all_of_the_code_and_nothing_that_was_made_from_it(wheel: bytes) -> None:
    names = zipfile.ZipFile(BytesIO(wheel)).namelist()
    package = Path(trainmark.__file__).parent
    assert {f"trainmark/{path.relative_to(package).as_posix()}" for path in package.rglob("*.py")} <= {*names}
    assert "trainmark/container/template/Dockerfile" in names
    assert not [name for name in names if name.endswith(".pyc")]
    assert names[-1] == "trainmark-1.2.3.dist-info/RECORD"


def test_the_same_code_gives_the_same_bytes(wheel: bytes) -> None:
    assert pack(an_origin()) == wheel


def test_it_says_the_version_of_the_code_whatever_the_installation_says(tmp_path: Path) -> None:
    (tmp_path / "wheel").write_bytes(pack(an_origin(version="9.9.post1.dev2+gabc")))
    zipfile.ZipFile(tmp_path / "wheel").extractall(tmp_path)
    code = "import importlib.metadata, trainmark; print(trainmark.__version__, importlib.metadata.version('trainmark'))"
    answer = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert answer.stdout == "9.9.post1.dev2+gabc 9.9.post1.dev2+gabc\n", answer.stderr
    assert (tmp_path / "trainmark-9.9.post1.dev2+gabc.dist-info/METADATA").is_file()


def test_source_alone_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> NoReturn:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    with pytest.raises(UsageError, match=r"expected trainmark installed, found no installation"):
        pack(an_origin())


def test_the_code_comes_from_its_own_clone_whatever_repository_a_hook_is_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = origins.origin()
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    assert origins.origin() == here


@pytest.mark.parametrize(
    ("remote", "said"),
    [
        ("https://me:secret@example.org/me/trainmark.git", "https://example.org/me/trainmark.git"),
        ("https://token@example.org/t", "https://example.org/t"),
        ("git@example.org:me/trainmark.git", "ssh://example.org/me/trainmark.git"),
        ("ssh://git@example.org:22/t", "ssh://example.org:22/t"),
        ("/work/main", None),
        ("../main", None),
        ("file:///work/main", None),
        ("https://example.org/a\nb", None),
        ('https://example.org/"', None),
        ("", None),
    ],
)
def test_an_address_is_published_without_passwords_and_a_folder_is_not(remote: str, said: str | None) -> None:
    assert origins.address(remote) == said


def test_the_commit_of_a_clone_and_of_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "trainmark"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(trainmark, "__file__", str(package / "__init__.py"))
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "somebody else's"], check=True)
    assert origins.origin().revision is None  # the package lies in a clone that does not know it
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "ours"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert origins.origin().revision == head
    (package / "__init__.py").write_text("changed = True")
    assert origins.origin().revision == f"{head}-dirty"
