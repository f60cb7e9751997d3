"""A trainer gives back the state that it was given, in the names, layouts and forms of the definition."""

from __future__ import annotations

from typing import Any

import pytest

from trainmark.backends import registry
from trainmark.backends.base import Options
from trainmark_conformance.cases import Case

from .states import WORKLOADS, require_kept


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize(
    ("backend", "style"),
    [("numpy", "idiomatic"), ("torch", "idiomatic"), ("torch", "fast"), ("jax", "idiomatic"), ("jax", "fast")],
)
def test_a_state_is_given_back(backend: str, style: Any, name: str) -> None:
    entry = registry.find(backend)
    if not entry.installed:
        pytest.skip(f"{entry.needs} is not installed")

    def make(case: Case) -> Any:
        options = Options(style, "cpu", "fp32", seed=1, threads=1, keeps_gradients=True)
        return registry.load(backend).trainer(case.workload, case.model, case.data, options)

    require_kept(make, name)
