"""Does `trainmark explain -- python train.py` name what is slow in a script, and does its promise
hold?

    python bench/slow_script/measure.py [--only NAME,...] [--seconds 60] [--minutes 9]
        [--out FILE.jsonl] [--no-mend] [--patch]

For each plant of train.py and habits.py it prints what is named first, with its line, what that
promises, and what mending it by hand gives (the named change, or the script without what is
planted), measured by `trainmark measure --vary` in the same minutes. With --patch, the patch that
`explain` writes is applied, measured against the script in the same way, and reversed. It ends
after --minutes; call it again to go on.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from trainmark.analysis.changes import SAMPLED

FOLDER = Path(__file__).resolve().parent
BY_HAND = ("threads", "workers", "batch", "fused", "foreach", "bf16")
"""Changes that train.py can make itself."""


class Plant(NamedTuple):
    """Something slow in a script.

    Args:
        script: the script that has it.
        named: the changes and causes that name it.
    """

    script: str
    named: set[str]


PLANTS = {
    "loader-sleep": Plant("train.py", {"same-batch", "workers", "prefetch", "loading-in-process"}),
    "decode": Plant("train.py", {"same-batch", "workers", "prefetch", "loading-in-process"}),
    "item": Plant("train.py", {"no-sync"}),
    "python-optimizer": Plant("train.py", {"no-optimizer", "torch-optimizer"}),
    "many-parameters": Plant("train.py", {"foreach", "fused"}),
    "one-thread": Plant("train.py", {"threads"}),
    "float64": Plant("train.py", {"fp32"}),
    "evaluation": Plant("train.py", {"no-evaluation"}),
    "checkpoint": Plant("train.py", {"no-saves"}),
    "transfer": Plant("train.py", {"line"}),
    "grad-evaluation": Plant("train.py", {"no-grad"}),
    "tiny-batch": Plant("train.py", {"batch"}),
    "anomaly": Plant("habits.py", {"anomaly-detection"}),
    "gc": Plant("habits.py", {"garbage-collection"}),
    "restarted-workers": Plant("habits.py", {"restarted-workers"}),
    "cell-loop": Plant("habits.py", {"loop-over-time"}),
    "checkpointed": Plant("habits.py", {"activation-checkpointing"}),
    "table": Plant("habits.py", {"pandas"}),
    "growing-tensor": Plant("habits.py", {"growing-tensor", "growth"}),
    "growing-list": Plant("habits.py", {"growing-list", "growth"}),
    "profiler": Plant("habits.py", {"no-python-profiler", "python-profiler"}),
    "logging": Plant("habits.py", {"logging"}),
    "deepcopy": Plant("habits.py", {"copies"}),
    "average": Plant("habits.py", {"weight-average"}),
}


class First(NamedTuple):
    """What an answer names first.

    Args:
        names: the change, without its value, and the cause.
        change: the change; empty if it is a cause alone.
        place: its line, if it has one.
        promised: how many times as fast the script would be; None if that is unknown.
        is_measured: whether that was measured, and is no bound.
    """

    names: list[str]
    change: str
    place: str | None
    promised: float | None
    is_measured: bool


def main() -> None:
    """Try each plant that has no line in the file yet."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(PLANTS))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument(
        "--mend",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="measure the mended script",
    )
    parser.add_argument("--patch", action="store_true", help="measure the patch")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    known: list[dict[str, Any]] = []
    if options.out and options.out.exists():
        known = [json.loads(line) for line in options.out.read_text().splitlines()]
    for slow in options.only.split(","):
        if slow in {each["slow"] for each in known}:
            continue
        if time.monotonic() > end:
            break
        known.append(tried(slow, options.seconds, mend=options.mend, patch=options.patch))
        if options.out:
            with options.out.open("a") as file:
                file.write(json.dumps(known[-1]) + "\n")
        print(line_of(known[-1]), flush=True)
    print(summary(known))


def tried(slow: str, seconds: float, *, mend: bool, patch: bool) -> dict[str, Any]:
    """Return what `explain` found of a plant, and what its cures give."""
    plant = PLANTS[slow]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(FOLDER / plant.script, folder)
        command = [sys.executable, plant.script, "--slow", slow]
        words = ["--seconds", str(seconds), "--json"]
        if patch:
            words += ["--patch", "found.patch"]
        began = time.monotonic()
        found = trainmark(folder, "explain", *words, "--", *command)
        first = named_first(found)
        result: dict[str, Any] = {
            "slow": slow,
            **first._asdict(),
            "is_right": bool(plant.named & set(first.names)),
            "line": place_of(plant.script, slow),
            "explained_seconds": round(time.monotonic() - began, 1),
            "sentence": next(iter(found["sentences"]), ""),
            "mended": None,
            "patched": None,
        }
        if mend:
            result["mended"] = mended(folder, slow, plant.script, first, seconds / 2)
        file = folder / "found.patch"
        if file.exists() and file.stat().st_size:
            stack = found["stack"] or found["findings"]
            whole = stack[-1] if found["stack"] else stack[0]
            result["patched"] = {
                "promised": whole["speedup"]["value"],
                "measured": patched(folder, command, file, seconds / 2),
                "reverses": reverses(folder, plant.script, file),
            }
        return result


def named_first(found: dict[str, Any]) -> First:
    """Return what the first sentence of an answer is about."""
    causes = found["causes"]
    if found["grows"]:
        growing = [each["name"] for each in causes if each["variable"]]
        return First(["growth", *growing], "", found["grows_at"], None, is_measured=False)
    findings = found["findings"]
    if found["stack"]:
        change = found["stack"][0]["change"]
        findings = [each for each in findings if each["change"] == change]
    if not findings or (causes and not found["stack"] and findings[0]["speedup"]["low"] <= 1):
        names = [causes[0]["name"]] if causes else []
        place = causes[0]["place"] if causes else None
        return First(names, "", place, None, is_measured=False)
    first = findings[0]
    change = first["change"]
    names = [change.partition("=")[0]]
    if first["cause"]:
        names.append(first["cause"]["name"])
    is_measured = first["proof"] != SAMPLED
    promised = first["speedup"]["value"]
    if first["cause"] and not is_measured and not first["cause"]["is_removed"]:
        promised = None  # the answer says the share alone
    return First(names, change, first["place"], promised, is_measured)


def place_of(script: str, slow: str) -> str | None:
    """Return the line that is to change, if the script has a comment there."""
    for number, line in enumerate((FOLDER / script).read_text("utf-8").splitlines(), 1):
        if line.endswith(f"# slow: {slow}"):
            return f"{script}:{number}"
    return None


def mended(folder: Path, slow: str, script: str, first: First, seconds: float) -> float | None:
    """Return what the named change gives if the script can make it, else the mended script.

    Both are interleaved.
    """
    if script == "train.py" and first.change.partition("=")[0] in BY_HAND:
        words = [sys.executable, script, "--slow", slow, "--change={change}"]
        return measured(folder, ["--vary", f"change=,{first.change}"], words, seconds)
    words = [sys.executable, script, "{how}"]
    return measured(folder, ["--vary", f"how=--slow={slow},--like={slow}"], words, seconds)


def patched(folder: Path, command: list[str], patch: Path, seconds: float) -> float | None:
    """Return what a patch gives, next to the script without it."""
    for name in ("before", "after"):
        shutil.copytree(folder, folder / name, ignore=shutil.ignore_patterns("before", "records"))
    subprocess.run(["patch", "-p1", "-s", "-i", str(patch)], cwd=folder / "after", check=True)
    words = ["sh", "-c", 'cd {version} && exec "$0" "$@"', *command]
    return measured(folder, ["--vary", "version=before,after"], words, seconds)


def reverses(folder: Path, script: str, patch: Path) -> bool:
    """Whether the script is as it was after the patch is reversed."""
    done = subprocess.run(["patch", "-p1", "-s", "-R", "-i", str(patch)], cwd=folder / "after")
    same = (folder / "after" / script).read_bytes() == (folder / script).read_bytes()
    return done.returncode == 0 and same


def measured(folder: Path, vary: list[str], words: list[str], seconds: float) -> float | None:
    """Return how many times as fast the second side is."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        budget = ["--repeats", "2", "--budget", str(seconds)]
        trainmark(folder, "measure", *vary, *budget, "--out", out, "--json", "--", *words)
        groups: list[dict[str, Any]] = trainmark(folder, "compare", out, "--json")["groups"]
    speedup = groups[1]["speedup"]
    ratio: float | None = speedup and speedup["ratio"]
    return ratio


def trainmark(folder: Path, *words: str) -> Any:
    """Run trainmark in a folder; returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "trainmark", *words], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        sys.exit(f"trainmark {' '.join(words)} ended with {done.returncode}")
    return json.loads(done.stdout)


def line_of(found: dict[str, Any]) -> str:
    """Return what was found of a plant, on a line."""
    named = "+".join(found["names"]) or "nothing"
    promised = "" if found["promised"] is None else f" {found['promised']:.2f}x"
    mended = "" if found["mended"] is None else f"; mending it gives {found['mended']:.2f}x"
    verdict = "right" if found["is_right"] else "WRONG"
    if found["line"] and found["place"] != found["line"]:
        verdict += f", but the line is {found['line']}"
    patch = ""
    if found["patched"]:
        given = found["patched"]["measured"]
        patch = f"; its patch promises {found['patched']['promised']:.2f}x"
        patch += "" if given is None else f", gives {given:.2f}x"
        patch += "" if found["patched"]["reverses"] else ", does not reverse"
    where = f" at {found['place']}" if found["place"] else ""
    return f"{found['slow']}: {verdict}: {named}{where}{promised}{mended}{patch}"


def summary(known: list[dict[str, Any]]) -> str:
    """Return how many plants were named first, and how many promises hold."""
    right = [each for each in known if each["is_right"]]
    lines = [each for each in right if not each["line"] or each["place"] == each["line"]]
    promised = [each for each in known if each["mended"] and each["is_measured"]]
    kept = [each for each in promised if abs(each["promised"] / each["mended"] - 1) <= 0.15]
    patches = [each["patched"] for each in known if each["patched"]]
    held = [
        each
        for each in patches
        if each["measured"] and abs(each["promised"] / each["measured"] - 1) <= 0.1
    ]
    reversed_ = sum(each["reverses"] for each in patches)
    return (
        f"named first in {len(right)} of {len(known)}, {len(lines)} with the right line; measured "
        f"promise within 15 % of mending in {len(kept)} of {len(promised)}; {len(patches)} patches,"
        f" of which {len(held)} keep their promise within 10 %, and {reversed_} reverse"
    )


if __name__ == "__main__":
    main()
