"""A session of `python bench/gpu` without a GPU."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gpu.process import Processes
from gpu.session import Session

CONTEXT = {
    "date": "2026-11-27",
    "device": "cuda:0",
    "device_name": "A GPU",
    "cpu": "A CPU",
    "cores": 2,
    "driver": "580",
    "cuda": "13.0",
    "python": "3.12.1",
    "versions": {"torch": "2.11.0"},
    "commit": "0123abcd",
    "quick": False,
}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    folder = tmp_path / "results"
    scratch = tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    return Session(
        folder,
        "cuda:0",
        quick=False,
        processes=Processes(scratch, dict(os.environ)),
        context=CONTEXT,
    )
