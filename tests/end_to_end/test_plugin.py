"""A backend in its own package: build it, install it, list it, run it, and test it with
trainmark-conformance."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trainmark.data.locate import Located

# the first test waits for a build, another one for a whole suite
pytestmark = pytest.mark.timeout(900)
ROOT = Path(__file__).parents[2]


class Installed:
    """The plug-in and the conformance suite in a folder that ``PYTHONPATH`` names."""

    def __init__(self, source: Path, target: Path, cache_home: Path) -> None:
        self.source = source
        path = os.pathsep.join([str(target), str(ROOT / "src")])
        self._environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(cache_home)}
        self._environment.pop("TRAINMARK_DATA", None)

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """``python -m ...`` next to the plug-in."""
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(
            command,
            cwd=self.source,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=600,
        )


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory, cache_home: Path) -> Installed:
    """It is built by the setuptools of this interpreter, without a network."""
    for needed in ("pip", "setuptools"):
        try:
            importlib.metadata.version(needed)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{needed} is not installed")
    folder = tmp_path_factory.mktemp("plugin")
    source = folder / "source"
    suite = folder / "suite"
    target = folder / "installed"
    caches = shutil.ignore_patterns("__pycache__")  # other tests write them meanwhile
    for original, copy in (("examples/plugin", source), ("plugins/trainmark-conformance", suite)):
        # a build leaves files next to its source
        shutil.copytree(ROOT / original, copy, ignore=caches)
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            *offline,
            "--target",
            str(target),
            str(source),
            str(suite),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return Installed(source, target, cache_home)


def test_it_is_listed_with_its_version(plugin: Installed) -> None:
    done = plugin.python("trainmark", "list", "backends", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = (backend for backend in json.loads(done.stdout) if backend["name"] == "scratch")
    assert found["installed"] is True
    assert found["version"] == "0.1.0"


def test_it_trains_a_workload_of_the_users(
    plugin: Installed, drawn: Located, tmp_path: Path
) -> None:
    """It trains from the same weights as the NumPy backend, to the same accuracy."""
    done = plugin.python(
        "trainmark",
        "run",
        "tiny.toml",
        "--backend",
        "scratch,numpy",
        "--dataset",
        "synthetic-digits",
        "--steps",
        "100",
        "--repeats",
        "1",
        "--budget",
        "0",
        "--out",
        str(tmp_path),
        "--json",
    )
    assert done.returncode == 0, done.stderr
    records = {record["backend"]["name"]: record for record in json.loads(done.stdout)}
    scratch = records["scratch"]
    numpy = records["numpy"]
    assert scratch["workload"]["name"] == "tiny"
    assert scratch["model"] == numpy["model"], "the same network, the same first weights"
    assert len(scratch["step_losses"]) == 100
    assert 0.5 < scratch["final"]["train_accuracy"] < 1
    assert scratch["final"]["test_accuracy"] == pytest.approx(
        numpy["final"]["test_accuracy"], abs=0.1
    )


def test_what_it_lacks_is_refused_before_anything_is_trained(
    plugin: Installed, drawn: Located, tmp_path: Path
) -> None:
    done = plugin.python(
        "trainmark",
        "run",
        "mnist-cnn",
        "--backend",
        "scratch",
        "--dataset",
        "synthetic-digits",
        "--out",
        str(tmp_path),
    )
    assert done.returncode == 2
    assert "scratch on cpu does not have the layer, loss or optimiser 'conv2d'" in done.stderr
    assert not list(tmp_path.glob("*.json"))


def test_it_conforms(plugin: Installed) -> None:
    """Its own tests are skipped where it lacks a feature."""
    done = plugin.python(
        "pytest", "-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider", "-q", "-rs", "tests"
    )
    assert done.returncode == 0, done.stdout
    assert "scratch does not have conv2d" in done.stdout
