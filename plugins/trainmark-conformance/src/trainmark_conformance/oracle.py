"""What must come out of a case: the NumPy backend in float64, and how far rounding alone may lead away from it."""

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
"""By name: float32 for weights, float64 for all else that rounding moves, whole numbers for what must be equal."""

Act = Callable[[Trainer, Case], Results]
"""Something to do with a trainer, the backend's and the oracle's alike."""

FLOAT64 = 1e-10
"""Distance allowed in float64: some digits less than the type has, for other orders of summation."""

FLOAT32_ROUNDING = 2.0**-23
"""Two float64 numbers that agree may be given away as float32 numbers one unit in the last place apart."""

FACTOR = 8
FLOOR = 2.0**-20
"""In float32 the allowed distance is measured: ``FACTOR`` times as far as the oracle itself moves when it is run in
float32, or in float32 from first weights that are one unit in the last place larger; at least eight units."""


def oracle_trainer(case: Case, precision: Precision = "fp64") -> NumpyTrainer:
    """The NumPy backend, ready for ``case``, with no weights yet."""
    options = Options("idiomatic", "cpu", precision, seed=1)
    return NumpyBackend().trainer(case.workload, case.model, case.data, options)


@cache
def exact(case: Case, act: Act) -> Results:
    """What the oracle's ``act`` on ``case`` gives."""
    return act(oracle_trainer(case), case)


@cache
def tolerances(case: Case, act: Act, precision: Precision) -> dict[str, float]:
    """The allowed :func:`distance` of each result."""
    expected = exact(case, act)
    if precision == "fp64":
        return {name: FLOAT32_ROUNDING if value.dtype == np.float32 else FLOAT64 for name, value in expected.items()}
    moved = [act(oracle_trainer(there, "fp32"), there) for there in (case, replace(case, nudged=True))]
    return {
        name: max(FLOOR, FACTOR * max(distance(results[name], value) for results in moved))
        for name, value in expected.items()
    }


def distance(found: NDArray[Any], expected: NDArray[Any]) -> float:
    """Largest difference, as a share of the largest expected value; infinite where it is not finite."""
    difference = np.abs(found.astype(np.float64) - expected.astype(np.float64)).max()
    return float(difference / (np.abs(expected).max() or 1.0)) if np.isfinite(difference) else float("inf")


def differences(found: Results, case: Case, act: Act, precision: Precision) -> list[str]:
    """What of ``found`` is not what the oracle gives, one line each; empty where all agrees."""
    expected, allowed = exact(case, act), tolerances(case, act, precision)
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
