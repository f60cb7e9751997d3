"""A user's installation: the wheel in an empty environment, away from this repository, without any
framework."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from trainmark.data.locate import Located
from trainmark.version import VERSION

pytestmark = pytest.mark.timeout(900)  # the first test waits for a build, and for pip
ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"

PROGRAM = """
import trainmark

records = trainmark.load_records("trainmark-results")
compared = trainmark.compare(records, by="device")
reveal_type(compared.comparison.groups[0].speedup.ratio)
trainmark.run("mnist-mlp128", repeats="three")
"""


@dataclass
class Installed:
    """An environment with the wheel in it, and a folder to work in."""

    wheel: Path
    bin: Path
    folder: Path
    cache_home: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one command of the environment, as a user's shell would start it."""
        kept = {
            name: os.environ[name]
            for name in ("HOME", "LANG", "TRAINMARK_DATA")
            if name in os.environ
        }
        environment = {
            **kept,
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "XDG_CACHE_HOME": str(self.cache_home),
        }
        return subprocess.run(
            [self.bin / words[0], *words[1:]],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
        )

    def add(self, what: str) -> None:
        """Install it there with the pip of this interpreter: an empty environment is made sooner
        without one."""
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(self.bin / "python"),
            "--disable-pip-version-check",
        ]
        done = subprocess.run(
            [*pip, "install", "--no-compile", "--quiet", what],
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(
    tmp_path_factory: pytest.TempPathFactory, cache_home: Path, drawn: Located
) -> Installed:
    pytest.importorskip("build", reason="the dev extra is not installed")
    folder = tmp_path_factory.mktemp("user")
    source = folder / "source"
    # The wheel is built from a copy, since building leaves traces in the tree, on which other tests
    # rely. Caches are left out, since their files vanish meanwhile.
    left_out = shutil.ignore_patterns(".*", "__pycache__", "docs", "tests", "build", "dist")
    shutil.copytree(ROOT, source, ignore=left_out)
    made = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(folder),
        str(source),
    ]
    subprocess.run(made, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    shutil.rmtree(source)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    installed = Installed(wheel, folder / "venv" / "bin", folder, cache_home)
    installed.add(str(wheel))
    return installed


def test_it_holds_the_package_and_nothing_else(installed: Installed) -> None:
    inside = {Path(name) for name in zipfile.ZipFile(installed.wheel).namelist()}
    assert {path.parts[0] for path in inside} == {"trainmark", f"trainmark-{VERSION}.dist-info"}
    tracked = {
        path.relative_to(ROOT / "src")
        for path in (ROOT / "src" / "trainmark").rglob("*")
        if path.is_file()
    }
    expected = {path for path in tracked if "__pycache__" not in path.parts}
    assert {path for path in inside if path.parts[0] == "trainmark"} == expected


def test_it_trains_without_any_framework(installed: Installed) -> None:
    done = installed.run(
        "trainmark",
        "run",
        "--steps",
        "5",
        "--repeats",
        "1",
        "--budget",
        "0",
        "--dataset",
        "synthetic-digits",
    )
    assert done.returncode == 0, done.stderr
    assert "numpy" in done.stdout
    (record,) = (installed.folder / "trainmark-results").glob("*.json")
    assert json.loads(record.read_text())["outcome"]["status"] == "ok"


def test_it_says_what_there_is(installed: Installed) -> None:
    doctor = installed.run("trainmark", "doctor", "--json")
    checks = {check["id"]: check["status"] for check in json.loads(doctor.stdout)["checks"]}
    assert checks["numpy.import"] == "PASS", doctor.stderr
    listed = json.loads(installed.run("trainmark", "list", "--json").stdout)
    assert [row["name"] for row in listed["backends"] if row["installed"]] == ["numpy"]
    assert installed.run("trainmark", "--version").stdout == f"trainmark {VERSION}\n"
    imported = installed.run(
        "python", "-c", "import trainmark; print(trainmark.__version__, trainmark.run.__name__)"
    )
    assert imported.stdout == f"{VERSION} run\n"


def test_it_compares_what_others_measured(installed: Installed) -> None:
    compared = installed.run("trainmark", "compare", str(RESULTS / "main-job"))
    assert compared.returncode == 0, compared.stderr
    fast = next(line for line in compared.stdout.splitlines() if line.startswith("fast   "))
    assert re.search(r"\d× (faster|same|slower|unclear)", fast)


def test_a_page_names_the_extra_that_it_needs(installed: Installed) -> None:
    done = installed.run("trainmark", "report", str(RESULTS / "main-job"))
    assert done.returncode == 2
    assert "pip install 'trainmark[report]'" in done.stderr


@pytest.mark.slow
def test_the_page_is_made_once_the_extra_is_there(installed: Installed) -> None:
    installed.add("trainmark[report]")  # the message says so: an installed package gets its extra
    done = installed.run("trainmark", "report", str(RESULTS / "main-job"), "-o", "page.html")
    assert done.returncode == 0, done.stderr
    assert (installed.folder / "page.html").read_text().startswith("<!doctype html>")


@pytest.mark.slow
def test_a_users_program_is_checked_against_its_types(installed: Installed) -> None:
    (installed.folder / "program.py").write_text(PROGRAM)
    words = [
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        str(installed.bin / "python"),
        "program.py",
    ]
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")
    }
    said = subprocess.run(
        [sys.executable, *words],
        cwd=installed.folder,
        env=environment,
        capture_output=True,
        text=True,
    ).stdout
    assert 'Revealed type is "float | None"' in said
    assert 'Argument "repeats" to "run" has incompatible type "str"; expected "int | None"' in said
    assert "Found 1 error" in said
