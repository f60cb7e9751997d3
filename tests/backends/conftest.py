"""JAX compiles anew for every test of its conformance, so the longest of them wait for the night."""

from __future__ import annotations

import pytest

NIGHTLY = {"test_what_it_remembers", "test_outputs_and_evaluations"}
"""What they show of JAX, NumPy and PyTorch show of the suite, and ``test_loss_and_gradients`` of most layers."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        of_jax = isinstance(item, pytest.Function) and item.cls is not None and item.cls.__name__ == "TestJaxFast"
        if of_jax and item.originalname in NIGHTLY:
            item.add_marker(pytest.mark.slow)
