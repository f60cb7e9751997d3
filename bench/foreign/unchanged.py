"""Whether a script trains the same, bit by bit, under `trainmark measure`."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from foreign.copies import copy_of, run, source_of, words_of
from foreign.scripts import HERE, Script

PROBE = HERE / "probe"
TIMES = re.compile(r"\d+\.\d+ ?(?:s\b|ms\b|seconds)|ms/batch +[\d.]+|time +[\d.]+ms|mfu -?[\d.]+%")
"""What scripts print of their speed, which differs from run to run."""


@dataclass(frozen=True)
class Run:
    """What a run of a script left.

    Args:
        code: its exit code.
        digest: the number of steps, and a digest of the weights after each.
        printed: what it printed, without times.
        errors: the end of its standard error.
    """

    code: int | None
    digest: str
    printed: str
    errors: str


def compared(script: Script, checkouts: Path, examples: str, python: str) -> str:
    """Return what differs between runs of a script with and without trainmark."""
    source = source_of(script, checkouts)
    if not source.is_dir():
        return f"left out, {source} is missing"
    measure = (
        *(sys.executable, "-m", "trainmark", "measure", "--repeats", "1"),
        *("--out", "../results", "--"),
    )
    alone = [_run(script, checkouts, examples, python, ()) for _ in range(2)]
    if alone[0].code != 0:
        return f"left out, exit code {alone[0].code}: {alone[0].errors}"
    observed = _run(script, checkouts, examples, python, measure)
    steps = alone[0].digest.partition(" ")[0]
    if int(steps or 0) == 0:
        return "left out, it has no optimizer of PyTorch"
    if alone[0] != alone[1]:
        return f"does not repeat itself ({steps} steps); under trainmark: code {observed.code}"
    if observed.code != 0:
        return f"CHANGED: exit code {observed.code}: {observed.errors}"
    if observed.digest != alone[0].digest:
        return f"CHANGED: weights differ ({alone[0].digest[:12]}, {observed.digest[:12]})"
    return f"the same weights after each of {steps} steps of optimizers"


def _run(
    script: Script, checkouts: Path, examples: str, python: str, before: tuple[str, ...]
) -> Run:
    """Run a script in a copy of its folder, by words ``before`` its own."""
    with copy_of(script, checkouts) as folder:
        digest = folder / "foreign-digest"
        words = words_of(script, python)
        more = {
            "FOREIGN_DIGEST": str(digest),
            "FOREIGN_SCRIPT": words[1],
            "OMP_NUM_THREADS": "1",
        }
        ended = run([*before, *words], folder, script, examples, more, (PROBE,))
        printed = "" if before else TIMES.sub("", ended.printed)
        found = digest.read_text() if digest.exists() else ""
        return Run(ended.code, found.strip(), printed, ended.errors.strip()[-300:])
