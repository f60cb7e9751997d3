"""The losses of a few steps on any device; also as a process, which prints them as JSON.

    python -m tests.gpu.losses BACKEND STYLE DEVICE PRECISION WORKLOAD

Keras keeps the engine with which it is first imported, so each engine needs a separate process.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from numpy.typing import NDArray

from tests.backends import test_torch_against_oracle as against_oracle
from trainmark.backends import registry
from trainmark.backends.base import Options
from trainmark.workload.model import initial_weights, lay_out

FLOAT64_BOUND = 1e-8
"""Relative bound in float64. A GPU adds in a different order each time; on an H200, `cifar10-cnn`
once differed by 1.1e-9."""
FLOAT32_FACTOR = 8
"""The bound in float32, as a multiple of the rounding error on a CPU, as in the conformance
tests."""


def losses_on(
    backend: str, style: str, device: str, precision: str, name: str
) -> NDArray[np.float64]:
    """Train the first steps of a workload without random parts, ``[steps]``."""
    workload = against_oracle.workload(name)
    model = lay_out(workload)
    data = against_oracle.data(name)
    options = Options(style, device, precision, seed=0)  # type: ignore[arg-type]
    trainer = registry.load(backend).trainer(workload, model, data, options)
    trainer.load(initial_weights(model, seed=3))
    plan = against_oracle.plan(workload, len(data.train))
    trainer.compile(plan)
    trainer.begin_epoch(plan)
    results = trainer.train(against_oracle.STEPS, lambda: None)
    trainer.synchronize()
    return trainer.read(results).losses


def bound(precision: str, name: str) -> float:
    """Return the largest relative difference between a correct backend's losses and the
    oracle's."""
    if precision == "fp64":
        return FLOAT64_BOUND
    return FLOAT32_FACTOR * against_oracle.float32_tolerance(name)


if __name__ == "__main__":
    print(json.dumps(losses_on(*sys.argv[1:]).tolist()))
