"""A program of a few lines with a callback in it, and what it says."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def needs(*modules: str) -> pytest.MarkDecorator:
    """Skips tests where one is missing; imports none of them, which every worker would do while it collects."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


def said(code: str, folder: Path) -> list[dict[str, Any]]:
    """The lines of the program in the order of their coming."""
    lines, script = folder / "lines", folder / "script.py"
    lines.touch()
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "TRAINMARK_HOOK": str(lines), "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in lines.read_text().splitlines()]


def events(lines: list[dict[str, Any]]) -> list[str]:
    """Which they are."""
    return [line["event"] for line in lines]
