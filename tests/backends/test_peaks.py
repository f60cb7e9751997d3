"""Every framework's products and copies are real: they take the time that their FLOPs and bytes
must take at least."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slow import slow
from trainmark.backends import registry

SCRIPT = """
import sys, time
from trainmark.backends import registry
from trainmark.backends.base import Options
from trainmark.backends.peaks import Convolving, MeasuresPeaks, best_seconds
from trainmark.workload.products import Convolution, Product
backend = registry.load(sys.argv[1])
assert isinstance(backend, MeasuresPeaks)
limits = backend.peak_kernels(Options("fast", "cpu", sys.argv[2], 0, threads=1))
asked = ([Product(size, size, size), Product(8, size, 8, turned=True)] for size in (512, 2048))
small, large = (best_seconds(limits.products(each), time.perf_counter, 0.5) for each in asked)
grown = large / small
if isinstance(limits, Convolving):
    layers = ([Convolution(batch, 24, 24, 8, 5, 16, True, 2)] for batch in (4, 256))
    small, large = (
    best_seconds(limits.convolutions(each), time.perf_counter, 0.5) for each in layers
)
    assert large > 6 * small, (small, large)
else:
    assert sys.argv[1] == "numpy", "every framework has convolutions of its own"
print(grown, 2 * 2**26 / best_seconds(limits.copy(2**26), time.perf_counter, 0.5))
"""


def rates(backend: str, precision: str) -> tuple[float, float]:
    entry = registry.find(backend)
    if not entry.installed:
        pytest.skip(f"{entry.needs} is not installed")
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, backend, precision],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    growth, bytes_per_second = map(float, done.stdout.split()[-2:])
    return growth, bytes_per_second


@pytest.mark.parametrize("precision", ["fp32", slow("fp64")])
@pytest.mark.parametrize("backend", ["numpy", slow("torch"), "jax", slow("keras")])
def test_products_take_as_their_flops_and_copies_are_not_left_out(
    backend: str, precision: str
) -> None:
    growth, bytes_per_second = rates(backend, precision)
    assert growth > 16, (
        "64 times the work; only waiting for nothing would be done in less than a quarter of that"
    )
    assert bytes_per_second < 1e12, "faster than any memory"
