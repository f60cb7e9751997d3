"""Whether a script trains the same, bit by bit, under `trainmark measure`."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from foreign.copies import copy_of, run, source_of, words_of
from foreign.scripts import HERE, Script

PROBE = HERE / "probe"
TIMES = re.compile(
    r"\b\d+(?:\.\d+)? ?(?:s|ms|us|sec|seconds)\b(?:/step)?|ms/batch +[\d.]+|time +[\d.]+ms"
    r"|mfu -?[\d.]+%"
)
"""What scripts print of their speed, which differs from run to run."""
OVERWRITTEN = re.compile(r"\x1b\[\d*m|[^\n]*[\r\x08]")
"""What a progress bar prints before its last state, and colours."""


@dataclass(frozen=True)
class Run:
    """What a run of a script left.

    Args:
        code: its exit code.
        digest: the number of steps, and a digest of the weights after each.
        printed: what it printed, without times and empty lines, in alphabetical order.
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
    steps = int(alone[0].digest.partition(" ")[0] or 0)
    if (alone[0].digest, alone[0].printed) != (alone[1].digest, alone[1].printed):
        return f"does not repeat itself ({steps} steps); under trainmark: code {observed.code}"
    if observed.code != 0:
        return f"CHANGED: exit code {observed.code}: {observed.errors}"
    if steps == 0:  # another framework, or further processes
        if not re.search(r"\d", alone[0].printed):
            return "left out, it has no optimizer of PyTorch, and prints no numbers"
        if observed.printed != alone[0].printed:
            return f"CHANGED: it prints {observed.printed[-300:]}"
        return f"prints the same {len(alone[0].printed)} characters"
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
        file = folder / "foreign-printed"
        shell = ("sh", "-c", 'exec "$@" > "$0"', str(file), *words)
        ended = run([*before, *shell], folder, script, examples, more, (PROBE,))
        text = file.read_text("utf-8") if file.exists() else ""
        lines = TIMES.sub("", OVERWRITTEN.sub("", text)).splitlines()
        # Several processes may print in another order.
        printed = "\n".join(sorted(filter(str.strip, lines)))
        found = digest.read_text() if digest.exists() else ""
        return Run(ended.code, found.strip(), printed, ended.errors.strip()[-300:])
