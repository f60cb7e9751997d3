"""The observer runs in the interpreter of the user, which may be an older Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import trainmark

PACKAGE = Path(trainmark.__file__).parent
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import hook
package = sys.modules["trainmark_inject"]
for found in pkgutil.walk_packages(package.__path__, "trainmark_inject."):
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        assert error.name in ("torch", "jax", "keras", "tensorflow", "numpy"), error
        print("without", error.name)
"""


def interpreter(version: str) -> str | None:
    """Return a Python of this version; None if there is none."""
    found = shutil.which(f"python{version}")
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    return str(kept[-1]) if kept else found


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10"])
def test_the_observer_starts(version: str, tmp_path: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    environment = {
        **os.environ,
        "PYTHONPATH": str(PACKAGE / "inject" / "site"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRAINMARK_OBSERVER": str(tmp_path),
        "TRAINMARK_METRIC": "loss",
    }
    run = subprocess.run(
        [python, "-c", IMPORT_ALL, str(PACKAGE)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "attached").exists()
