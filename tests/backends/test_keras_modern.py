"""Today's networks on each engine of Keras, in a process of its own as in ``test_keras.py``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.test_keras import SOURCES, require
from tests.slow import slow

INSIDE = Path(__file__).with_name("keras_modern_inside.py")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("entry", ["keras", slow("keras:torch"), slow("keras:jax")])
def test_inside_a_process_of_its_own(entry: str) -> None:
    require(entry)
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--noconftest", "-p", "no:cacheprovider"]
    answer = subprocess.run(
        [*command, "--disable-warnings", str(INSIDE)],
        env={**os.environ, "PYTHONPATH": SOURCES, "KERAS_ENTRY": entry},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stdout[-10_000:] + answer.stderr[-2_000:]
    assert " passed" in answer.stdout
