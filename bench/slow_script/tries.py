"""Can `trainmark measure` and `explain` be trusted with a script? The same question many times.

    python bench/slow_script/tries.py KIND,... FOLDER [--tries 10] [--seconds 60] [--minutes 9]
    python bench/slow_script/tries.py KIND,... FOLDER --tries 0

The second prints the results so far.

KIND is one of

    equal    `measure` of the unchanged script (train.py) against itself; false verdicts and
             half-widths. Its budget is 0.6 of --seconds, since the starts of processes take the
             rest
    promise  `explain` of the script without a fault, then the change that it names first, made by
    hand, in `measure`
    batch    `explain --only batch`: eight times as large a batch with the same rate must be
             reported to harm learning
    three    `explain` of the script with three slow parts: the stack has to name all three, and
             its promised speed-up is compared with that of the mended script
    fp16     `explain --only fp16` where the gradients are too small for 16 bits,
    which must be reported as well

`try` ends after --minutes; call it again to go on.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SCRIPT = [sys.executable, str(Path(__file__).with_name("train.py"))]
KINDS = ("equal", "promise", "three", "batch", "fp16")
THREE = {
    "loader-sleep": {"same-batch", "workers", "prefetch"},
    "item": {"no-sync"},
    "float64": {"fp32"},
}
"""Three slow parts of the script, with the changes that name each."""


def main() -> None:
    """Add tries in turn, and sum up."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", metavar="KIND,...")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tries", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--minutes", type=float, default=9.0)
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    end = time.monotonic() + 60 * options.minutes
    options.folder.mkdir(parents=True, exist_ok=True)
    for number in range(options.tries):
        for kind in kinds:
            if len(_known(options.folder, kind)) <= number and time.monotonic() < end:
                found = _try(kind, options.seconds, seed=number + 1)
                with (options.folder / f"{kind}.jsonl").open("a") as file:
                    file.write(json.dumps(found) + "\n")
                print(kind, json.dumps(found), flush=True)
    for kind in kinds:
        print(_summary(kind, _known(options.folder, kind)))


def _try(kind: str, seconds: float, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        if kind == "equal":
            return _measured(folder, ["--vary-env", "SIDE=A,B"], SCRIPT, 0.6 * seconds)
        if kind == "promise":
            found = _explained(folder, [*SCRIPT, "--seed", str(seed)], seconds)
            made = [
                each for each in found if each["kind"] == "change" and each["learning"] != "worse"
            ]
            won = [
                each
                for each in made
                if each["speedup"]["low"] > 1 and each["speedup"]["value"] > 1.03
            ]
            if not won:
                return {"change": ""}
            vary = ["--vary", f"change=,{won[0]['change']}"]
            by_hand = _measured(folder, vary, [*SCRIPT, "--change={change}"], 0.75 * seconds)
            return {"change": won[0]["change"], "promised": won[0]["speedup"], "by_hand": by_hand}
        if kind == "three":
            return _three(folder, seconds, seed)
        words = [*SCRIPT, "--seed", str(seed), "--slow", "small-loss" if kind == "fp16" else "none"]
        found = _explained(folder, words, seconds, "--only", kind)
        return found[0] if found else {"learning": "no result"}


def _three(folder: str, seconds: float, seed: int) -> dict[str, Any]:
    """Return what is stacked of a script with three slow parts, and what mending them gives."""
    slow = "+".join(THREE)
    words = [*SCRIPT, "--seed", str(seed)]
    stack = _answer(folder, [*words, "--slow", slow], seconds)["stack"]
    whole = stack[-1] if stack else None
    vary = ["--vary", f"how=--slow={slow},--like={slow}"]
    return {
        "change": whole and whole["change"],
        "promised": whole and whole["speedup"],
        "by_hand": _measured(folder, vary, [*words, "{how}"], 0.75 * seconds),
    }


def _names_all(change: str | None) -> bool:
    """Whether a stack has a change for each of the three slow parts."""
    names = {each.partition("=")[0] for each in (change or "").split("+")}
    return all(names & each for each in THREE.values())


def _answer(folder: str, words: list[str], seconds: float, *options: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        _trainmark(folder, "explain", "--seconds", str(seconds), *options, "--json", "--", *words)
    )
    return answer


def _explained(
    folder: str, words: list[str], seconds: float, *options: str
) -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = _answer(folder, words, seconds, *options)["findings"]
    return [
        {key: each[key] for key in ("change", "kind", "speedup", "learning")} for each in findings
    ]


def _measured(folder: str, vary: list[str], words: list[str], seconds: float) -> dict[str, Any]:
    out = str(Path(folder) / "records")
    _trainmark(
        folder, "measure", *vary, "--budget", str(seconds), "--out", out, "--json", "--", *words
    )
    speedup: dict[str, Any] = json.loads(_trainmark(folder, "compare", out, "--json"))["groups"][1][
        "speedup"
    ]
    return {key: speedup[key] for key in ("ratio", "low", "high", "verdict")}


def _trainmark(folder: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "trainmark", *words], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        sys.exit(f"trainmark {' '.join(words)} ended with {done.returncode}")
    return done.stdout


def _summary(kind: str, known: list[dict[str, Any]]) -> str:
    if kind == "equal":
        halves = [(each["high"] / each["low"]) ** 0.5 - 1 for each in known if each["low"]]
        false = sum(each["verdict"] in ("faster", "slower") for each in known)
        half = f"{statistics.median(halves):.1%}" if halves else "unknown"
        return f"equal: {false} false verdicts in {len(known)} tries; half-width, median {half}"
    if kind == "promise":
        made = [each for each in known if each["change"]]
        kept = sum(
            each["promised"]["low"] <= each["by_hand"]["ratio"] <= each["promised"]["high"]
            for each in made
        )
        return (
            f"promise: kept in {kept} of {len(made)}; nothing promised in {len(known) - len(made)}"
        )
    if kind == "three":
        named = [each for each in known if _names_all(each["change"])]
        close = [
            each
            for each in named
            if abs(each["promised"]["value"] / each["by_hand"]["ratio"] - 1) <= 0.15
        ]
        return (
            f"three: all stacked in {len(named)} of {len(known)}; promise within 15 % of the gain "
            f"of the mended script in {len(close)}"
        )
    return (
        f"{kind}: said to harm learning in "
        f"{sum(each['learning'] == 'worse' for each in known)} of {len(known)}"
    )


def _known(folder: Path, kind: str) -> list[dict[str, Any]]:
    file = folder / f"{kind}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


if __name__ == "__main__":
    main()
