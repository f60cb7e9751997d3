"""The interpreter that has MXNet: MXNet 1.9 can't be imported with a current NumPy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for the command line, as XDG_CACHE_HOME, which all workers of this session share."""
    own = tmp_path_factory.getbasetemp()
    home = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "cache-home"
    home.mkdir(exist_ok=True)
    return home


@pytest.fixture(scope="session")
def python() -> Path:
    """An interpreter with the plug-in and pytest, named by ``TRAINMARK_MXNET_PYTHON``."""
    named = os.environ.get("TRAINMARK_MXNET_PYTHON")
    if not named:
        pytest.skip("TRAINMARK_MXNET_PYTHON names no interpreter with the plug-in trainmark-mxnet")
    return Path(named)
