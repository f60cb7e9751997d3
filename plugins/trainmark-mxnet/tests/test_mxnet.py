"""The plug-in in the interpreter that ``TRAINMARK_MXNET_PYTHON`` names, from inside and through the
command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainmark.record.store import load

PLUGIN = Path(__file__).parents[1]
ROOT = PLUGIN.parents[1]
INSIDE = Path(__file__).with_name("mxnet_inside.py")
SOURCES = os.pathsep.join(
    str(folder / "src") for folder in (ROOT, PLUGIN, ROOT / "plugins" / "trainmark-conformance")
)
BY_DAY = "not TestIdiomatic and not SinglePrecision and not products"
"""Which tests don't wait for the night."""
DIGITS = ("--dataset", "synthetic-digits")


def trainmark(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trainmark", *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True
    )


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "selection", [BY_DAY, pytest.param(f"not ({BY_DAY})", marks=pytest.mark.slow)]
)
def test_inside_its_own_interpreter(python: Path, selection: str) -> None:
    """Conformance in both styles and precisions, and what only MXNet has."""
    command = [
        str(python),
        "-m",
        "pytest",
        "-q",
        "-c",
        os.devnull,
        "--noconftest",
        "-p",
        "no:cacheprovider",
    ]
    answer = subprocess.run(
        [*command, "--disable-warnings", str(INSIDE), "-k", selection],
        env={**os.environ, "PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stdout[-10_000:] + answer.stderr[-2_000:]
    assert " passed" in answer.stdout


def test_a_run_from_the_command_line(python: Path, tmp_path: Path, cache_home: Path) -> None:
    """This interpreter doesn't know the backend, and trainmark is not installed where it trains."""
    out = tmp_path / "records"
    answer = trainmark(
        *(
            "run",
            "mnist-mlp128",
            "--backend",
            "mxnet@old",
            "--python",
            f"old={python}",
            "--repeats",
            "1",
            "--budget",
            "0",
        ),
        *(*DIGITS, "--steps", "30", "--log-every", "10", "--out", str(out)),
        XDG_CACHE_HOME=str(cache_home),
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    records = load([out])
    assert {record.backend.style for record in records} == {"idiomatic", "fast"}
    for record in records:
        assert record.outcome.status == "ok"
        assert record.python.label == "old"
        assert len(record.step_losses) == 30


@pytest.mark.slow
def test_predict_reproduces_the_accuracy(python: Path, tmp_path: Path, cache_home: Path) -> None:
    there = ("--python", f"old={python}", "--out", str(tmp_path))
    trained = trainmark(
        *(
            "run",
            "mnist-mlp512",
            "--backend",
            "mxnet@old",
            "--style",
            "fast",
            "--repeats",
            "1",
            *there,
        ),
        *(*DIGITS, "--steps", "20", "--save-weights"),
        XDG_CACHE_HOME=str(cache_home),
    )
    assert trained.returncode == 0, trained.stderr
    (record,) = tmp_path.glob("*.json")
    predicted = trainmark(
        "predict", str(record), *there[:2], "--json", XDG_CACHE_HOME=str(cache_home)
    )
    assert predicted.returncode == 0, predicted.stderr
    assert json.loads(predicted.stdout)["reproduced"] is True


def test_list_shows_it_with_the_interpreter_that_has_it(python: Path) -> None:
    answer = trainmark("list", "backends", "--python", f"old={python}", "--json")
    assert answer.returncode == 0, answer.stderr
    rows = {row["name"]: row for row in json.loads(answer.stdout)}
    assert rows["mxnet@old"]["version"] == "1.9.1"
    assert "mxnet" not in rows


@pytest.mark.parametrize(
    ("stub", "said"),
    [
        (
            "raise AttributeError(\"module 'numpy' has no attribute 'bool'\")",
            "expected numpy older than 1.24",
        ),
        ("__version__ = '2.0.0'", "this MXNet has no Module: expected MXNet 1.9, found 2.0.0"),
        ("__version__ = '1.5.1'", "this MXNet is too old: expected 1.9 or newer, found 1.5.1"),
    ],
)
def test_another_mxnet_is_refused(tmp_path: Path, stub: str, said: str) -> None:
    """Needs no MXNet: the stub is imported under its name."""
    (tmp_path / "mxnet.py").write_text(stub)
    code = "from trainmark_mxnet.backend import MxnetBackend; MxnetBackend().capabilities()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), SOURCES])}
    answer = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert said in answer.stderr.splitlines()[-1]
