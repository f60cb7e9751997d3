"""Public scripts that were not written for trainmark: are they harmed, and are they seen rightly?

    python bench/foreign unchanged CHECKOUTS [--only NAME,...]
    python bench/foreign try CHECKOUTS --out FILE.jsonl [--only NAME,... | --quick] [--seconds 60]
    python bench/foreign score FILE.jsonl [--judged FILE.toml]
    python bench/foreign draw NUMBER SEED

CHECKOUTS has a checkout of each repository of scripts.toml, in a folder of its owner and name. Each
script runs in a copy of it, with data of equal shape in place of what it would download. Packages
that scripts need may lie in a folder of PYTHONPATH, or in the environment of --python.

unchanged runs each script twice by itself and once under `trainmark measure`, each time with the
same seeds. It prints whether the weights after every step of every optimizer are the same, bit by
bit. A script that does not repeat itself is named. The exit code is 1 if trainmark changed one.

try runs each script by itself, under `measure` and under `explain --seconds 60`, and appends what
they found to FILE.jsonl; those that are there already are not run again. --quick takes ten that
need 25 minutes together.

score compares that with the truth of scripts.toml, prints what is wrong, and a line with the score.
With --judged, it includes what readers found wrong in the sentences: a table for each script, with
a list `wrong`.

draw prints candidates that are drawn by a seed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import tomllib
from foreign.copies import source_of
from foreign.scoring import Judged, Seen, score, seen
from foreign.scripts import Script, drawn, listed
from foreign.trials import Trial, loaded, saved, shortened, tried
from foreign.unchanged import compared


def main() -> int:
    """Run a command; returns the exit code."""
    options = _options()
    if options.command == "unchanged":
        return _unchanged(options)
    if options.command == "try":
        return _try(options)
    if options.command == "score":
        return _score(options)
    print("\n".join(drawn(options.number, options.seed)))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("unchanged", "try"):
        command = commands.add_parser(name)
        command.add_argument("checkouts", type=Path)
        command.add_argument("--only", default="")
        command.add_argument("--examples", default="2000")
        command.add_argument("--python", default=sys.executable)
        if name == "try":
            command.add_argument("--out", type=Path, required=True)
            command.add_argument("--quick", action="store_true")
            command.add_argument("--seconds", type=float, default=60.0)
    command = commands.add_parser("score")
    command.add_argument("file", type=Path)
    command.add_argument("--judged", type=Path)
    command = commands.add_parser("draw")
    command.add_argument("number", type=int)
    command.add_argument("seed", type=int)
    return parser.parse_args()


def _chosen(only: str) -> list[Script]:
    """Return the scripts of a list of names; all without one."""
    names = set(filter(None, only.split(",")))
    return [script for script in listed() if not names or script.name in names]


def _unchanged(options: argparse.Namespace) -> int:
    changed = 0
    for script in _chosen(options.only):
        verdict = compared(script, options.checkouts, options.examples, options.python)
        changed += verdict.startswith("CHANGED")
        print(f"{script.name}: {verdict}", flush=True)
    return 1 if changed else 0


def _try(options: argparse.Namespace) -> int:
    done = {trial.name for trial in _trials(options.out)}
    for script in _chosen(options.only):
        if script.truth is None or script.name in done or (options.quick and not script.is_quick):
            continue
        if not source_of(script, options.checkouts).is_dir():
            print(f"{script.name}: left out, its checkout is missing", flush=True)
            continue
        trial = tried(script, options.checkouts, options.examples, options.python, options.seconds)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(saved(shortened(trial)) + "\n")
        print(_verdict(seen(script, script.truth, trial)), flush=True)
    return 0


def _score(options: argparse.Namespace) -> int:
    trials = {trial.name: trial for trial in _trials(options.file)}
    found = [
        seen(script, script.truth, trials[script.name])
        for script in listed()
        if script.truth is not None and script.name in trials
    ]
    for each in found:
        print(_verdict(each))
    print(score(found, _judged(options.judged)))
    return 0


def _trials(file: Path) -> list[Trial]:
    if not file.exists():
        return []
    return [loaded(line) for line in file.read_text("utf-8").splitlines()]


def _judged(file: Path | None) -> dict[str, Judged]:
    if file is None:
        return {}
    tables = tomllib.loads(file.read_text("utf-8"))
    return {name: Judged(tuple(table["wrong"])) for name, table in tables.items()}


def _verdict(found: Seen) -> str:
    """Return what is wrong with one script, as a line."""
    parts = [f"WRONG: {each}" for each in found.wrong]
    parts += [f"unknown: {each}" for each in found.unknown]
    parts += [f"HARMED: {each}" for each in found.harmed]
    if found.is_useful is not None:
        parts.append("useful" if found.is_useful else "not useful")
    return f"{found.name}: {'; '.join(parts) or 'right'} ({found.seconds:.0f} s)"
