"""The Keras backends, each in its own process: Keras keeps the engine it is first imported
with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slow import slow
from trainmark.backends import registry
from trainmark.record.store import load

ROOT = Path(__file__).parents[2]
SOURCES = os.pathsep.join(
    [str(ROOT / "src"), str(ROOT / "plugins" / "trainmark-conformance" / "src")]
)
INSIDE = Path(__file__).with_name("keras_inside.py")
BY_DAY = "not compiled and not every_cut or fit_is_compiled"
"""The daily tests; the others build many trainers, and XLA compiles for half a minute."""


def require(entry: str) -> None:
    if not registry.find(entry).installed:
        pytest.skip(f"{registry.find(entry).needs} is not installed")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("entry", "selection"),
    [("keras", BY_DAY), slow("keras", ""), slow("keras:torch", ""), slow("keras:jax", "")],
)
def test_inside_a_separate_process(entry: str, selection: str) -> None:
    require(entry)
    command = [
        sys.executable,
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
        env={**os.environ, "PYTHONPATH": SOURCES, "KERAS_ENTRY": entry},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stdout[-10_000:] + answer.stderr[-2_000:]
    assert " passed" in answer.stdout


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("entry", "styles"),
    [
        ("keras", "fast"),  # the styles differ within the process, where other tests look at both
        slow("keras", "idiomatic,fast"),
        slow("keras:torch", "idiomatic,fast"),
        slow("keras:jax", "idiomatic,fast"),
    ],
)
def test_a_run_from_the_command_line(
    entry: str, styles: str, tmp_path: Path, cache_home: Path
) -> None:
    require(entry)
    out = tmp_path / "records"
    arguments = (
        f"run mnist-mlp128 --backend {entry} --style {styles} --repeats 1 --steps 30 "
        "--budget 0".split()
    )
    arguments += ["--dataset", "synthetic-digits", "--log-every", "10", "--out", str(out)]
    answer = subprocess.run(
        [sys.executable, "-m", "trainmark", *arguments],
        env={**os.environ, "XDG_CACHE_HOME": str(cache_home)},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    records = load([out])
    assert {record.backend.style for record in records} == set(styles.split(","))
    for record in records:
        assert (record.backend.name, record.outcome.status) == (entry, "ok")
        assert len(record.step_losses) == 30
