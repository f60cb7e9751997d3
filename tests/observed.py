"""Runs a script with the observer alone, without trainmark around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trainmark.inject

SITE = Path(trainmark.inject.__file__).parent / "site"
FOLDER = SITE.parent
"""The folder of the observer's files."""


@dataclass(frozen=True)
class Run:
    """What a script has done, and what the observer has reported of it."""

    code: int
    out: str
    err: str
    reports: tuple[dict[str, Any], ...] = ()
    step_times: tuple[tuple[float, ...], ...] = ()

    @property
    def visible(self) -> tuple[int, str, str]:
        """What a user sees of it."""
        return self.code, self.out, self.err

    @property
    def steps(self) -> int:
        """The number of steps that were seen."""
        return max((each["steps"] for each in self.reports), default=0)

    @property
    def injected(self) -> list[str]:
        """What was patched, and what could not be."""
        return self.reports[-1]["injected"] if self.reports else []


def plain(script: Path, *words: str, folder: Path) -> Run:
    """Run a script in a folder, without the observer."""
    return _run({}, script, *words, folder=folder)


def observed(script: Path, *words: str, folder: Path, steps: int = 0) -> Run:
    """Run a script in a folder, with the observer; ``steps`` ends its training."""
    own = folder / "of the observer"
    own.mkdir()
    pipe = own / "pipe"
    pipe.touch()
    extra = {
        "TRAINMARK_OBSERVER": str(own),
        "TRAINMARK_HOOK": str(pipe),
        "TRAINMARK_STEPS": str(steps),
        "PYTHONPATH": str(SITE),
    }
    run = _run(extra, script, *words, folder=folder)
    messages = [json.loads(line) for line in pipe.read_text().splitlines()]
    reports = tuple(each for each in messages if each["event"] == "observed")
    times = [each["parts"] for each in messages if each["event"] == "step_times"]
    parts = tuple(tuple(part) for part in (times[-1] if times else ()))
    return Run(run.code, run.out, run.err, reports, parts)


def _run(extra: dict[str, str], script: Path, *words: str, folder: Path) -> Run:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"} | extra
    done = subprocess.run(
        [sys.executable, str(script), *words],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr)
