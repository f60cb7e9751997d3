"""Runs scripts in copies of their folders, with data of equal shape in place of downloads."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from foreign import stand_ins
from foreign.scripts import HERE, Script

PACKAGES = HERE / "site-packages"
"""Folder that comes first in the path of modules."""
TIMEOUT_SECONDS = 900.0


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Args:
        code: its exit code; None if it was killed after :data:`TIMEOUT_SECONDS`.
        seconds: how long it took.
        printed: its standard output.
        errors: its standard error.
    """

    code: int | None
    seconds: float
    printed: str
    errors: str


def source_of(script: Script, checkouts: Path) -> Path:
    """Return the folder of a script in its checkout."""
    return checkouts / script.repository / script.folder


@contextlib.contextmanager
def copy_of(script: Script, checkouts: Path) -> Iterator[Path]:
    """Make a copy of the repository of a script, with its stand-ins; yields the script's folder."""
    with tempfile.TemporaryDirectory() as top:
        root = Path(top) / "work"
        shutil.copytree(checkouts / script.repository, root, symlinks=True)
        folder = root / script.folder
        for name in script.stand_ins:
            stand_ins.make(name, folder)
        yield folder


def run(
    words: Sequence[str],
    folder: Path,
    script: Script,
    examples: str,
    more: Mapping[str, str],
    before: Sequence[Path] = (),
) -> Ended:
    """Run a command in a copy.

    Args:
        words: of the command.
        folder: the working folder.
        script: the script, whose environment it gets.
        examples: most examples of a drawn dataset.
        more: further variables of the environment.
        before: folders that come first in the path of modules.
    """
    paths = [*map(str, before), str(PACKAGES), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "STAND_IN_EXAMPLES": examples,
        "MPLBACKEND": "Agg",
        **script.environment,
        **more,
    }
    began = time.perf_counter()
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        printed, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        printed, errors = process.communicate()
        code = None
    return Ended(code, time.perf_counter() - began, printed, errors)


def words_of(script: Script, python: str = sys.executable) -> list[str]:
    """Return the command of a script, with the interpreter that runs it."""
    return [python if each == "python" else each for each in script.command]
