"""The expected results of a case, from the NumPy backend in float64, and how far rounding may move
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import Options, Trainer
from trainmark.backends.numpy.backend import NumpyBackend, NumpyTrainer
from trainmark.workload.precision import Precision
from trainmark_conformance.cases import Case

Results = dict[str, NDArray[Any]]
"""Arrays by name: weights in float32, other rounded results in float64, and integers, which must be
equal."""

Act = Callable[[Trainer, Case], Results]
"""Uses a trainer that has loaded the first weights of a case, and returns the results to
compare."""

FLOAT64 = 1e-10
"""Allowed distance in float64. It leaves out a few digits, because the order of summation
differs."""

FLOAT32_ROUNDING = 2.0**-23
"""float64 weights that agree may differ by one unit in the last place once they are returned as
float32."""

FACTOR = 8
FLOOR = 2.0**-20
"""In float32 the allowed distance is measured: ``FACTOR`` times the distance that the oracle moves
when it runs in float32, also from first weights that are one unit in the last place larger; at
least eight such units."""


def oracle_trainer(case: Case, precision: Precision = "fp64") -> NumpyTrainer:
    """Make the NumPy backend's trainer of a case.

    Args:
        case: the training.
        precision: precision of the arithmetic.

    Returns:
        A trainer that has loaded the first weights of the case.
    """
    options = Options("idiomatic", "cpu", precision, seed=1)
    trainer = NumpyBackend().trainer(case.workload, case.model, case.data, options)
    trainer.load(case.weights)
    return trainer


@cache
def exact(case: Case, act: Act) -> Results:
    """Compute the expected results.

    Args:
        case: the training.
        act: what is done with the trainer.

    Returns:
        The results of the oracle.
    """
    return act(oracle_trainer(case), case)


@cache
def tolerances(case: Case, act: Act, precision: Precision) -> dict[str, float]:
    """Compute how far results may be from the oracle's.

    Args:
        case: the training.
        act: what is done with the trainer.
        precision: precision of the backend under test.

    Returns:
        The largest allowed :func:`distance` of each result, by name.
    """
    expected = exact(case, act)
    if precision == "fp64":
        return {
            name: FLOAT32_ROUNDING if value.dtype == np.float32 else FLOAT64
            for name, value in expected.items()
        }
    moved = [
        act(oracle_trainer(there, "fp32"), there) for there in (case, replace(case, nudged=True))
    ]
    return {
        name: max(FLOOR, FACTOR * max(distance(results[name], value) for results in moved))
        for name, value in expected.items()
    }


def distance(found: NDArray[Any], expected: NDArray[Any]) -> float:
    """Compute how far a result is from the expected one.

    Args:
        found: the result.
        expected: the expected result, of the same shape.

    Returns:
        The largest difference, relative to the largest expected value; infinite if any difference
        is not finite.
    """
    difference = np.abs(found.astype(np.float64) - expected.astype(np.float64)).max()
    return (
        float(difference / (np.abs(expected).max() or 1.0))
        if np.isfinite(difference)
        else float("inf")
    )


def differences(found: Results, case: Case, act: Act, precision: Precision) -> list[str]:
    """Compare the results of a backend with the oracle's.

    Args:
        found: results of the backend, by name.
        case: the training.
        act: what was done with the trainer.
        precision: precision of the backend.

    Returns:
        A line for each result that differs; empty if all agree.
    """
    expected = exact(case, act)
    allowed = tolerances(case, act, precision)
    if found.keys() != expected.keys():
        return [f"expected the results {sorted(expected)}, found {sorted(found)}"]
    lines = []
    for name, value in expected.items():
        if found[name].shape != value.shape:
            lines.append(f"{name}: expected the shape {value.shape}, found {found[name].shape}")
        elif np.issubdtype(value.dtype, np.integer):
            if not np.array_equal(found[name], value):
                lines.append(f"{name}: expected {value.tolist()}, found {found[name].tolist()}")
        elif (apart := distance(found[name], value)) > allowed[name]:
            lines.append(f"{name}: {apart:.2g} away from the oracle's, allowed {allowed[name]:.2g}")
    return lines
