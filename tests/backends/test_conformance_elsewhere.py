"""Keras needs its own process for each engine, since it keeps the one it is first imported
with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slow import slow
from trainmark.backends import registry

ROOT = Path(__file__).parents[2]
SOURCES = os.pathsep.join(
    [str(ROOT / "src"), str(ROOT / "plugins" / "trainmark-conformance" / "src")]
)
STYLES = pytest.mark.parametrize("style", [slow("Idiomatic"), "Fast"])
ENGINES = pytest.mark.parametrize("backend", [slow("keras"), "keras:torch", slow("keras:jax")])
BY_DAY = "not (own and head) and not (continues and (adam or rmsprop or velocity))"
"""One language model, and one optimiser that another trainer continues with. ``test_all_of_it``
has the others."""


def conformance(backend: str, style: str, *selection: str) -> None:
    """Run the conformance tests of one backend and style in a their own process."""
    entry = registry.find(backend)
    if not entry.installed:
        pytest.skip(f"{entry.needs} is not installed")
    # The arguments leave out pyproject.toml and conftest.py, whose plugins and imports that
    # interpreter may lack.
    options = [
        "-c",
        os.devnull,
        "--noconftest",
        "--rootdir",
        str(ROOT),
        "-p",
        "no:cacheprovider",
        "-p",
        "no:warnings",
    ]
    tests = ["-q", "-rfEs", f"tests/backends/one_backend.py::Test{style}", *selection]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=ROOT,
        env={**os.environ, "CONFORMING_BACKEND": backend, "PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert " passed" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_batches_of_the_compiled_loop() -> None:
    conformance("keras", "FastBatches")


@pytest.mark.slow
@pytest.mark.timeout(600)
@ENGINES
def test_chance_in_the_compiled_loop(backend: str) -> None:
    """The daily tests run each engine's loop with distorted images and with dropout."""
    conformance(
        backend, "Fast", "-k", "brightness or contrast or mirrored or dropout_zeroes or underflows"
    )


@pytest.mark.timeout(600)
@STYLES
def test_recipes(style: str) -> None:
    """The daily tests run today's networks on one engine; each case is compiled anew."""
    conformance("keras", f"{style}Recipes", "-k", BY_DAY)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@STYLES
@ENGINES
def test_all_of_it(backend: str, style: str) -> None:
    """It compiles for every test, which takes minutes."""
    conformance(backend, style)
