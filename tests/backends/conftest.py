"""Compilers do what is needed for numbers, not for speed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="package", autouse=True)
def _xla_compiles_quickly() -> Iterator[None]:
    """Spare XLA's optimisations unless the environment has flags, as in ``.ci/nightly``.

    Nearly all programs here run only once, and compiling them took most of the time.
    """
    with pytest.MonkeyPatch.context() as patch:
        if "XLA_FLAGS" not in os.environ:
            patch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
        yield
