"""Which device the tests of this folder use: the GPU if there is one, else the CPU."""

from __future__ import annotations

import os

import pytest

from trainmark.backends import registry
from trainmark.measure.vendors import read_driver

GPU = "cuda:0"

# Several frameworks share the GPU in one process of pytest, and by default JAX and TensorFlow take
# nearly all of it.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")


@pytest.fixture(params=["cpu", pytest.param(GPU, marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """The GPU if the machine has one; without one, the CPU shows that the test itself works."""
    return present(request.param)


def present(device: str) -> str:
    """Return the device to test; skip the test if this machine should test another one."""
    has_gpu = bool(read_driver().gpus)
    if device == GPU and not has_gpu:
        pytest.skip("this machine has no GPU")
    if device == "cpu" and has_gpu:
        pytest.skip("this machine has a GPU, where the same test runs")
    return device


def require(backend: str, device: str) -> None:
    """Skip the test if a backend is not installed or does not see the device."""
    entry = registry.find(backend)
    if not entry.installed:
        pytest.skip(f"{backend} needs {entry.needs}, which is not installed")
    if device == "cpu":
        return
    seen = [each.id for each in registry.load(backend).capabilities().devices]
    if device not in seen:
        pytest.skip(f"{backend} sees {', '.join(seen)}, not {device}")
