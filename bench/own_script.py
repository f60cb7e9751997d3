"""What does `trainmark measure` say of a script, and what do its three lines cost?

    python bench/own_script.py [--repeats 11] [--most 10000] [--out FILE.json]

examples/own-script/train.py with its three lines and without them, interleaved, with one thread,
which is steadier than two on a shared machine: their times should agree within 2 %. Then with 5
ms wasted in each step and without: the difference should be within 10 % of what was planted, and
two equal ones should not differ. (They are wasted in a loop: where the thread sleeps, or others
have nothing to do meanwhile, cores fall asleep, and here the step after that took 2 ms longer.)
Then what a call costs when no one listens. Needs TRAINMARK_DATA with MNIST, and PyTorch.
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

from trainmark import hook

SCRIPT = Path(__file__).parents[1] / "examples/own-script/train.py"
PAUSE = 0.005
CALLS = 1_000_000
BATCH = 1_000


def trainmark(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "trainmark", *arguments], stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        sys.exit(f"trainmark {' '.join(arguments)} ended with {done.returncode}")
    return done.stdout


def compared(words: list[str], vary: str, repeats: int) -> list[dict[str, Any]]:
    """Return the groups; those with the first value come first."""
    with tempfile.TemporaryDirectory() as out:
        trainmark(
            "measure",
            "--vary",
            vary,
            "--repeats",
            str(repeats),
            "--out",
            out,
            "--json",
            "--",
            *words,
        )
        groups: list[dict[str, Any]] = json.loads(trainmark("compare", out, "--json"))["groups"]
    return groups


def untouched(folder: Path) -> Path:
    """Return the script without the lines that are marked as trainmark's."""
    path = folder / "untouched.py"
    path.write_text(
        "".join(line for line in SCRIPT.read_text().splitlines(keepends=True) if "of 3" not in line)
    )
    assert "hook" not in path.read_text()
    return path


def said(group: dict[str, Any], of: str) -> str:
    speedup = group["speedup"]
    seconds = group[f"{of}_seconds"]["median"]
    interval = "" if speedup["low"] is None else f" [{speedup['low']:.3f}, {speedup['high']:.3f}]"
    return f"{seconds:.3f} s, {speedup['ratio']:.3f}x{interval} {speedup['verdict']}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--most", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    words = [sys.executable, "{script}", "--most", str(options.most), "--threads", "1"]
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        vary = f"script={untouched(Path(folder))},{SCRIPT}"
        results["lines"] = plain, lines = compared(words, vary, options.repeats)
    ratio = lines["process_seconds"]["median"] / plain["process_seconds"]["median"]
    print(f"whole process, untouched: {plain['process_seconds']['median']:.3f} s")
    print(
        f"whole process, with the three lines: {said(lines, 'process')}; medians differ by "
        f"{100 * (ratio - 1):+.2f} %"
    )

    words = [
        sys.executable,
        str(SCRIPT),
        "--most",
        str(options.most),
        "--threads",
        "1",
        "--pause",
        "{pause}",
    ]
    results["pause"] = quick, slow = compared(words, f"pause=0,{PAUSE}", options.repeats)
    steps = slow["steps"] / slow["epochs"]
    found = slow["epoch_seconds"]["median"] - quick["epoch_seconds"]["median"]
    print(f"an epoch with nothing planted: {quick['epoch_seconds']['median']:.3f} s")
    print(
        f"an epoch with {1e3 * PAUSE:g} ms a step planted: {said(slow, 'epoch')}; {found:.3f} s "
        "more, planted "
        f"{steps * PAUSE:.3f} s: {100 * (found / (steps * PAUSE) - 1):+.1f} %"
    )
    results["equal"] = _, same = compared(words, "pause=0,0.0", options.repeats)
    print(f"the same again: {said(same, 'epoch')}")

    costs = []
    for _ in range(CALLS // BATCH):
        start = time.perf_counter()
        for _ in range(BATCH):
            hook.epoch(loss=0.5, accuracy=0.5, examples=100)
        costs.append((time.perf_counter() - start) / BATCH)
    results["call_seconds"] = costs
    print(
        f"a call, nobody listening: {1e9 * statistics.median(costs):.0f} ns (median of "
        f"{len(costs)} x {BATCH} calls)"
    )
    if options.out:
        options.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
