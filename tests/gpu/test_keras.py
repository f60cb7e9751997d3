"""Keras on a real GPU, each engine in a separate process: the losses of the oracle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.backends import test_torch_against_oracle as against_oracle
from tests.gpu.conftest import GPU, present, require
from tests.gpu.losses import bound
from tests.slow import slow

ROOT = Path(__file__).parents[2]
NO_SUCH_DEVICE = "does not see the device"
NO_SUCH_PRECISION = "does not have the precision"


@pytest.fixture(params=[slow("cpu"), GPU])
def device(request: pytest.FixtureRequest) -> str:
    """Return the device to test; on the CPU, these tests run only at night."""
    return present(request.param)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("entry", "style", "precision", "name"),
    [
        ("keras", "fast", "fp64", "mnist-mlp128"),
        ("keras", "idiomatic", "fp64", "mnist-mlp512"),
        ("keras", "fast", "fp32", "mnist-cnn"),
        ("keras:jax", "fast", "fp64", "mnist-mlp128"),
        ("keras:torch", "fast", "fp32", "mnist-mlp128"),
    ],
)
def test_losses_are_those_of_the_oracle(
    entry: str, style: str, precision: str, name: str, device: str
) -> None:
    require(entry, "cpu")  # its own process finds out whether it sees the GPU
    command = [sys.executable, "-m", "tests.gpu.losses", entry, style, device, precision, name]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    for reason in (NO_SUCH_DEVICE, NO_SUCH_PRECISION):
        if reason in answer.stderr:
            pytest.skip(answer.stderr.strip().splitlines()[-1])
    assert answer.returncode == 0, answer.stderr[-3000:]
    found = np.array(json.loads(answer.stdout.splitlines()[-1]))
    assert against_oracle.apart(found, against_oracle.oracle(name)) < bound(precision, name)
