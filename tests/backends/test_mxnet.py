"""The MXNet backend, in an interpreter of its own: MXNet 1.9 can't be imported with a NumPy of today.

``TRAINMARK_MXNET_PYTHON`` names that interpreter, which has mxnet 1.9.1, numpy 1.23.5 and pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainmark.record.store import load

SOURCE = Path(__file__).parents[2] / "src"
INSIDE = Path(__file__).with_name("mxnet_inside.py")


@pytest.fixture(scope="module")
def python() -> Path:
    """MXNet's interpreter."""
    named = os.environ.get("TRAINMARK_MXNET_PYTHON")
    if not named:
        pytest.skip("TRAINMARK_MXNET_PYTHON names no interpreter with mxnet 1.9.1")
    return Path(named)


@pytest.mark.timeout(900)
def test_inside_its_own_interpreter(python: Path) -> None:
    """Conformance in both styles and precisions, and what only MXNet has."""
    command = [str(python), "-m", "pytest", "-q", "-c", os.devnull, "--noconftest", "-p", "no:cacheprovider"]
    answer = subprocess.run(
        [*command, "--disable-warnings", str(INSIDE)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stdout[-10_000:] + answer.stderr[-2_000:]
    assert " passed" in answer.stdout


def test_a_run_from_the_command_line(python: Path, tmp_path: Path, cache_home: Path) -> None:
    """Nothing of trainmark is installed where it trains."""
    out = tmp_path / "records"
    arguments = ["run", "mnist-mlp128", "--backend", "mxnet@old", "--python", f"old={python}", "--repeats", "1"]
    answer = subprocess.run(
        [
            *(sys.executable, "-m", "trainmark", *arguments),
            *("--dataset", "synthetic-digits", "--steps", "30", "--log-every", "10", "--out", str(out)),
        ],
        env={**os.environ, "XDG_CACHE_HOME": str(cache_home)},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    records = load([out])
    assert {record.backend.style for record in records} == {"idiomatic", "fast"}
    for record in records:
        assert record.outcome.status == "ok"
        assert record.python.label == "old"
        assert len(record.step_losses) == 30


@pytest.mark.parametrize(
    ("stub", "said"),
    [
        ("raise AttributeError(\"module 'numpy' has no attribute 'bool'\")", "expected numpy older than 1.24"),
        ("__version__ = '2.0.0'", "this MXNet has no Module: expected MXNet 1.9, found 2.0.0"),
        ("__version__ = '1.5.1'", "this MXNet is too old: expected 1.9 or newer, found 1.5.1"),
    ],
)
def test_an_mxnet_that_does_not_fit_is_told(tmp_path: Path, stub: str, said: str) -> None:
    """Needs no MXNet: the stub is what is found under that name."""
    (tmp_path / "mxnet.py").write_text(stub)
    code = "from trainmark.backends import registry; registry.load('mxnet').capabilities()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(SOURCE)])}
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert said in answer.stderr.splitlines()[-1]
