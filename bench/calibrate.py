"""Do the verdicts keep their word? Thousands of comparisons drawn from real runs whose true ratio
is known.

    python bench/calibrate.py pool FOLDER [--rounds 60]
    python bench/calibrate.py judge FOLDER
    python bench/calibrate.py bar FOLDER [--times 10]

`pool` runs A, A again, and A with 5 % more steps, interleaved. `judge` draws comparisons from that
pool and prints their verdicts. `bar` runs --fail-below on equal sides and on one slowed by 20 %.

A is mnist-mlp128 with torch `fast`, epochs of 400 steps, so that 5 % more work is 420 steps an
epoch. A comparison of n rounds is n rounds of the pool, drawn with replacement so that they are
independent, each keeping its own pair, as `trainmark run` would have measured it. `bar` runs the
whole command, with a backend whose steps take a known time. Needs TRAINMARK_DATA.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import random
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from trainmark.analysis.comparison import MARGIN
from trainmark.analysis.statistics import paired_difference, speed_verdict
from trainmark.analysis.summary import summarize
from trainmark.record.store import load
from trainmark.workload import catalog

STEPS = 400
MORE_STEPS = 420
FAKE = os.pathsep.join(
    filter(
        None,
        (
            str(Path(__file__).parents[1] / "tests" / "plugins" / "fake"),
            os.environ.get("PYTHONPATH"),
        ),
    )
)
"""Where interpreters find the fake backend."""
EPOCHS = 4
DRAWS = 2_000
SLOW = 1.2
EQUAL = 1.0


def pool(folder: Path, rounds: int) -> None:
    """Rounds of three runs; the order within a round turns, so that no side always comes first."""
    folder.mkdir(parents=True, exist_ok=True)
    for steps in (STEPS, MORE_STEPS):
        (folder / f"steps-{steps}.toml").write_text(_toml(steps))
    sides = [("a", STEPS), ("again", STEPS), ("more", MORE_STEPS)]
    for number in range(rounds):
        turn = number % len(sides)
        for name, steps in sides[turn:] + sides[:turn]:
            out = folder / name
            if len(list(out.glob("*.json"))) > number:
                continue  # an interrupted pool goes on
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "trainmark",
                    "run",
                    str(folder / f"steps-{steps}.toml"),
                    "--backend",
                    "torch",
                    "--style",
                    "fast",
                    "--device",
                    "cpu",
                    "--repeats",
                    "1",
                    "--out",
                    str(out),
                ],
                check=True,
                capture_output=True,
            )
        print(f"round {number + 1} of {rounds}", flush=True)


def _toml(steps: int) -> str:
    """mnist-mlp128 with epochs of this many steps."""
    text = (
        Path(catalog.__file__).with_name("mnist-mlp128.toml").read_text().partition("[published")[0]
    )
    lines = []
    for line in text.splitlines():
        lines.append(line)
        if line.strip() == "[schedule]":
            lines += [f"steps_per_epoch = {steps}"]
    return (
        "\n".join(
            line if not line.startswith("epochs =") else f"epochs = {EPOCHS}" for line in lines
        )
        + "\n"
    )


def judge(folder: Path, seed: int = 1) -> dict[str, Any]:
    """Print comparisons of 5 and of 20 rounds, drawn from the pool; also of equal runs of which one
    side is slowed down in the numbers."""
    seconds = {name: _seconds(folder / name) for name in ("a", "again", "more")}
    count = min(map(len, seconds.values()))
    rng = random.Random(seed)
    same = [math.log(a / b) for a, b in zip(seconds["a"], seconds["again"], strict=False)]
    slowed = [math.log(a / b) for a, b in zip(seconds["a"], seconds["more"], strict=False)]
    planted = math.log(STEPS / MORE_STEPS)
    found = {
        "rounds_in_pool": count,
        "epoch_seconds": seconds,
        "spread_of_seconds": statistics.stdev(map(math.log, seconds["a"])),
        "spread_of_pairs": statistics.stdev(same),
        "planted_ratio_of_slowed": math.exp(planted),
        "measured_ratio_of_slowed": dataclasses.asdict(paired_difference(slowed).exponential()),
        "same_5": _draw(same, 5, 0.0, rng),
        "slowed_5": _draw(slowed, 5, planted, rng),
        "slowed_20": _draw(slowed, 20, planted, rng),
        **{
            f"moved_by_{percent}_percent_5": _draw(
                [each - math.log(1 + percent / 100) for each in same], 5, None, rng
            )
            for percent in (10, 20, 30, 50)
        },
    }
    print(
        json.dumps({key: value for key, value in found.items() if key != "epoch_seconds"}, indent=1)
    )
    return found


def _seconds(folder: Path) -> list[float]:
    records = sorted(load([folder]), key=lambda record: record.created)
    known = [summarize(record).epoch_seconds for record in records]
    assert all(seconds is not None for seconds in known)
    return [seconds for seconds in known if seconds is not None]


def _draw(
    logs: list[float], rounds: int, truth: float | None, rng: random.Random
) -> dict[str, Any]:
    verdicts: Counter[str] = Counter()
    covered = 0
    for _ in range(DRAWS):
        estimate = paired_difference(rng.choices(logs, k=rounds))
        verdicts[speed_verdict(estimate.exponential(), MARGIN)] += 1
        assert estimate.low is not None
        assert estimate.high is not None
        covered += truth is not None and estimate.low <= truth <= estimate.high
    shares = {verdict: number / DRAWS for verdict, number in sorted(verdicts.items())}
    coverage = {} if truth is None else {"covers_truth": covered / DRAWS}
    return {"draws": DRAWS, "rounds": rounds, "verdicts": shares, **coverage}


def bar(folder: Path, times: int) -> dict[str, Any]:
    """Exit codes of ``compare --fail-below 0.95`` of an interpreter against itself, and against a
    slowed one."""
    codes: dict[str, list[int]] = {}
    for name, factor in (("equal", EQUAL), ("slowed", SLOW)):
        codes[name] = [_bar_once(folder / f"{name}-{number}", factor) for number in range(times)]
        print(f"{name}: exit codes {codes[name]}", flush=True)
    return codes


def _bar_once(folder: Path, factor: float) -> int:
    folder.mkdir(parents=True)
    other = folder / "python"
    behaviour = json.dumps({"step_seconds": 0.004 * factor})
    other.write_text(
        f"#!/bin/sh\nPYTHONPATH='{FAKE}' TRAINMARK_FAKE='{behaviour}' exec "
        f"'{sys.executable}' \"$@\"\n"
    )
    other.chmod(0o755)
    out = folder / "records"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "trainmark",
            "run",
            "mnist-mlp128",
            "--backend",
            "fake,fake@other",
            "--python",
            f"other={other}",
            "--style",
            "fast",
            "--device",
            "cpu",
            "--steps",
            "120",
            "--out",
            str(out),
        ],
        check=True,
        capture_output=True,
        env={
            **os.environ,
            "PYTHONPATH": FAKE,
            "TRAINMARK_FAKE": json.dumps({"step_seconds": 0.004}),
        },
    )
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "trainmark",
            "compare",
            str(out),
            "--by",
            "python",
            "--baseline",
            "python=default",
            "--fail-below",
            "0.95",
        ],
        check=False,
        capture_output=True,
    ).returncode


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("pool", "judge", "bar"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.what == "pool":
        pool(options.folder, options.rounds)
        return
    found = judge(options.folder) if options.what == "judge" else bar(options.folder, options.times)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
