"""Are public scripts left as they are by `trainmark measure`?

    python bench/foreign CHECKOUTS [--only NAME,...] [--examples 2000]

CHECKOUTS has a checkout of each repository of scripts.toml, in a folder of its owner and name. Each
script runs in a copy of its folder, with data of equal shape in place of what it would download:
twice by itself and once under `trainmark measure`, each time with the same seeds. It prints whether
the weights after every step of every optimizer are the same, bit by bit. A script that does not
repeat itself is named. The exit code is 1 if trainmark changed one.

Packages that scripts need may lie in a folder of PYTHONPATH.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import tomllib
from foreign import stand_ins

HERE = Path(__file__).resolve().parent
OURS = (str(HERE / "probe"), str(HERE / "packages"))
"""Folders that come first in the path of modules."""
TIMEOUT_SECONDS = 900.0
TIMES = re.compile(r"\d+\.\d+ ?(?:s\b|ms\b|seconds)|ms/batch +[\d.]+|time +[\d.]+ms|mfu -?[\d.]+%")
"""What scripts print of their speed, which differs from run to run."""


@dataclass(frozen=True)
class Script:
    """A public script; see the comments of scripts.toml."""

    name: str
    repository: str
    commit: str
    folder: str
    command: tuple[str, ...]
    stand_ins: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """What a run of a script left.

    Args:
        code: its exit code.
        digest: the number of steps, and a digest of the weights after each.
        printed: what it printed, without times.
        errors: the end of its standard error.
    """

    code: int
    digest: str
    printed: str
    errors: str


def main() -> int:
    """Run the listed scripts; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--examples", default="2000")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    changed = 0
    for script in scripts():
        if only and script.name not in only:
            continue
        verdict = compared(script, options.checkouts, options.examples)
        changed += verdict.startswith("CHANGED")
        print(f"{script.name}: {verdict}", flush=True)
    return 1 if changed else 0


def scripts() -> list[Script]:
    """Return the listed scripts."""
    listed = tomllib.loads((HERE / "scripts.toml").read_text("utf-8"))["script"]
    return [
        Script(**{**each, "command": tuple(each["command"]), "stand_ins": tuple(each["stand_ins"])})
        for each in listed
    ]


def compared(script: Script, checkouts: Path, examples: str) -> str:
    """Return what differs between runs of a script with and without trainmark."""
    source = checkouts / script.repository / script.folder
    if not source.is_dir():
        return f"left out, {source} is missing"
    measure = ("-m", "trainmark", "measure", "--repeats", "1", "--out", "../results", "--")
    alone = [run(script, source, examples, ()) for _ in range(2)]
    if alone[0].code != 0:
        return f"left out, exit code {alone[0].code}: {alone[0].errors}"
    observed = run(script, source, examples, (sys.executable, *measure))
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


def run(script: Script, source: Path, examples: str, before: tuple[str, ...]) -> Run:
    """Run a script in a copy of its folder, by words ``before`` its own."""
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "work"
        shutil.copytree(source, folder)
        for name in script.stand_ins:
            stand_ins.make(name, folder)
        digest = Path(top) / "digest"
        words = [sys.executable if each == "python" else each for each in script.command]
        ended = subprocess.run(
            [*before, *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(
                    [
                        *map(str, (HERE / "probe", HERE / "packages")),
                        os.environ.get("PYTHONPATH", ""),
                    ]
                ),
                "FOREIGN_DIGEST": str(digest),
                "FOREIGN_SCRIPT": words[1],
                "STAND_IN_EXAMPLES": examples,
                "MPLBACKEND": "Agg",
                "OMP_NUM_THREADS": "1",
            },
        )
        printed = "" if before else TIMES.sub("", ended.stdout)
        found = digest.read_text() if digest.exists() else ""
        return Run(ended.returncode, found.strip(), printed, ended.stderr.strip()[-300:])
