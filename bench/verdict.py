"""Do verdicts hold on this machine? Comparisons of sides whose true ratio is known, many times over.

    python bench/verdict.py try KIND FOLDER [--tries 60] [--minutes 9]    add tries to FOLDER/KIND.jsonl
    python bench/verdict.py summary FOLDER                                what they say so far
    python bench/verdict.py simulate FOLDER [--draws 2000]                comparisons drawn from their rounds

mnist-mlp128 with PyTorch `fast` on the CPU. A try is a comparison of --seconds (60), as `trainmark run` makes it, but
with rounds of slices alone. KIND is one of

    equal           a side and the same again
    old             the same by the protocol of version 0.1: one process after the other, two epochs each
    busy            equal, while two other processes compute
    comes-and-goes  equal, while two others compute for 3 s and sleep for 3 s
    nice            equal, while two others compute at low priority
    more-10, more-5 the second side takes one step in ten, or in twenty, twice

`try` ends after --minutes, so it can be called again; `equal` and `old` are best called in turn. Needs TRAINMARK_DATA.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import json
import math
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trainmark.analysis.comparison import MARGIN, compare
from trainmark.analysis.results import GroupResult
from trainmark.analysis.slices import compare_slices
from trainmark.analysis.statistics import (
    LOOK_CONFIDENCE,
    ROUNDS_TRIMMED,
    SLICES_CONFIDENCE,
    Estimate,
    paired_difference,
    speed_verdict,
)
from trainmark.execute.parent.plan import Run, Settings, Side
from trainmark.execute.parent.probe import THIS, Interpreter, probe
from trainmark.execute.parent.request import Request
from trainmark.execute.parent.scheduler import Observer, execute
from trainmark.execute.parent.task import Task, in_rounds
from trainmark.measure.machine import cpu_load
from trainmark.record.record import Record
from trainmark.record.store import Store
from trainmark.study.chosen import ChosenSide, choose
from trainmark.study.rounds import LOOKS, Budget, rounds_within, slices_alone

WORKLOAD = "mnist-mlp128"
KINDS = {"equal": 0, "old": 0, "busy": 0, "comes-and-goes": 0, "nice": 0, "more-10": 10, "more-5": 20}
"""With every how many steps one is taken twice."""
LABELS = ("A", "B")
NEIGHBOURS = {
    "busy": "while True: pass",
    "comes-and-goes": "import time as t\nwhile True:\n end = t.time() + 3\n while t.time() < end: pass\n t.sleep(3)",
    "nice": "import os\nos.nice(19)\nwhile True: pass",
}
MORE = '''
"""PyTorch's `fast`, with one step in so many taken twice."""

import os
from trainmark.backends.torch.backend import TorchBackend
from trainmark.backends.torch.fast import TorchFastTrainer


class More(TorchFastTrainer):
    def _step_on(self, x, y, row):
        super()._step_on(x, y, row)
        if self._step % int(os.environ["EVERY"]) == 0:
            super()._step_on(x, y, row)


class MoreWork(TorchBackend):
    def trainer(self, workload, model, data, options):
        return More(workload, model, data, options)
'''


def one_try(kind: str, chosen: ChosenSide, seconds: float, folder: Path) -> dict[str, Any]:
    """One comparison, and what it said."""
    backends = ("torch", "more" if KINDS[kind] else "torch")
    sides = [
        dataclasses.replace(chosen.side, backend=backend, interpreter=Interpreter(label, THIS.path))
        for backend, label in zip(backends, LABELS, strict=True)
    ]
    seen = {(side.backend, side.interpreter.label): chosen.seen for side in sides}
    store, load = Store(folder), cpu_load()

    def carry_out(tasks: list[Task[Run]]) -> list[Record]:
        return execute(tasks, seen, store, Observer())

    start = time.perf_counter()
    if kind == "old":
        records: list[Record] = []
        course = dataclasses.replace(chosen.course, workload=chosen.course.workload.with_schedule(epochs=2, steps=None))
        round_ = 0
        while time.perf_counter() - start < seconds:
            planned = in_rounds([(course, sides)], chosen.settings)
            records += [each for task in planned for each in carry_out([task.in_round(round_)])]
            round_ += 1
    else:
        planned = [slices_alone(task) for task in in_rounds([(chosen.course, sides)], chosen.settings)]
        records = rounds_within(Budget(seconds), planned, carry_out)
    took = time.perf_counter() - start
    return {"kind": kind, "load_before": load, "seconds": took, **_said(records, sides)}


def _said(records: list[Record], sides: Sequence[Side]) -> dict[str, Any]:
    groups = compare(records, baseline=("python", LABELS[0]) if sides[0].backend == sides[1].backend else None).groups
    these: GroupResult = next(group for group in groups if group.key.python == LABELS[1])
    one, other = ([record for record in records if record.python.label == label] for label in LABELS)
    sliced = compare_slices(one, other)
    return {
        "verdict": these.speedup.verdict,
        **{name: getattr(these.speedup, name) for name in ("ratio", "low", "high")},
        "caveats": [caveat.value for caveat in these.caveats],
        "rounds": [[dataclasses.astuple(block) for block in blocks] for blocks in sliced.rounds] if sliced else [],
        "failed": [record.outcome.reason for record in records if record.outcome.status != "ok"],
        "timed_share": _timed_share(records),
    }


def _timed_share(records: Sequence[Record]) -> float | None:
    """Of the time from the first slice of a round to its last, how much is timed."""
    shares = []
    for number in {record.round for record in records}:
        slices = [each for record in records if record.round == number for each in record.slices]
        if slices:
            start = min(each.start_seconds for each in slices)
            end = max(each.start_seconds + each.seconds * each.steps / each.timed_steps for each in slices)
            shares.append(sum(each.seconds for each in slices) / (end - start))
    return statistics.fmean(shares) if shares else None


@contextlib.contextmanager
def neighbours(kind: str) -> Iterator[None]:
    """Two other processes that compute."""
    words = [sys.executable, "-c", NEIGHBOURS.get(kind, "")]
    started = [subprocess.Popen(words) for _ in range(2 if kind in NEIGHBOURS else 0)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextlib.contextmanager
def more_work(every: int) -> Iterator[None]:
    """The backend that takes some steps twice is installed."""
    with tempfile.TemporaryDirectory() as scratch:
        information = Path(scratch) / "more-1.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: more\nVersion: 1.0\n")
        (information / "entry_points.txt").write_text("[trainmark.backends]\nmore = more:MoreWork\n")
        (Path(scratch) / "more.py").write_text(MORE)
        before = os.environ.get("PYTHONPATH", "")
        os.environ |= {"PYTHONPATH": os.pathsep.join(filter(None, (scratch, before))), "EVERY": str(every)}
        sys.path.insert(0, scratch)
        try:
            yield
        finally:
            sys.path.remove(scratch)
            os.environ["PYTHONPATH"] = before


def tries(kind: str, folder: Path, most: int, seconds: float, minutes: float) -> None:
    """Add tries to the file of ``kind`` until there are ``most``, or the minutes are over."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{kind}.jsonl"
    end = time.monotonic() + 60 * minutes - seconds
    environment = Path(os.environ["TRAINMARK_DATA"])
    request = Request(
        workloads=(WORKLOAD,), backends=("torch",), styles=("fast",), devices=("cpu",), environment=environment,
        settings=Settings(),
    )  # fmt: skip
    chosen = choose(request, None)
    with more_work(KINDS[kind] or 1), neighbours(kind):
        assert probe(THIS, "more").can is not None, "the backend with more work can't be loaded"
        while time.monotonic() < end and len(_read(file)) < most:
            with tempfile.TemporaryDirectory() as out:
                said = one_try(kind, chosen, seconds, Path(out))
            at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
            with file.open("a") as opened:
                opened.write(json.dumps({"at": at, "machine": platform.node(), **said}) + "\n")
            print(_line(said), flush=True)


def _line(said: dict[str, Any]) -> str:
    blocks = [block for blocks in said["rounds"] for block in blocks]
    left_out = sum(disturbed for _, disturbed in blocks)
    interval = "" if said["low"] is None else f" [{said['low']:.3f}, {said['high']:.3f}]"
    return (
        f"{said['kind']}: {said['verdict']}, {said['ratio'] or math.nan:.3f}{interval}, {len(said['rounds'])} rounds, "
        f"{left_out} of {len(blocks)} blocks left out, load before {said['load_before']:.0%}"
    )


def _read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def summary(folder: Path) -> None:
    """Of each kind: how often which verdict, how wide the intervals are, how much was left out."""
    for kind in KINDS:
        said = _read(folder / f"{kind}.jsonl")
        if not said:
            continue
        withheld = sum("too-disturbed" in each["caveats"] for each in said)
        widths = [math.sqrt(each["high"] / each["low"]) - 1 for each in said if each["low"]]
        shares = [each["timed_share"] for each in said if each["timed_share"]]
        verdicts = {
            name: sum(each["verdict"] == name for each in said) for name in ("faster", "slower", "same", "unclear")
        }
        print(
            f"{kind}: {len(said)} tries, {', '.join(f'{number} {name}' for name, number in verdicts.items())}; "
            f"withheld {withheld}; half-width, median {statistics.median(widths):.1%}"
            + (f"; timed {statistics.fmean(shares):.0%} of the time" if shares else "")
            if widths
            else f"{kind}: {len(said)} tries without an interval"
        )


def simulate(folder: Path, draws: int, seed: int = 1) -> None:
    """Comparisons of equal sides, each of rounds drawn from those of ``equal``, with the rule of stopping."""
    pool = [_ratio(blocks) for each in _read(folder / "equal.jsonl") for blocks in each["rounds"]]
    ratios = [ratio for ratio in pool if ratio is not None]
    rng = random.Random(seed)
    for most in (3, 4, 6, 12, 24):
        false = covered = 0
        for _ in range(draws):
            verdict, estimate = _stopped([rng.choice(ratios) * rng.choice((-1, 1)) for _ in range(most)])
            false += verdict in ("faster", "slower")
            covered += estimate.low is not None and estimate.high is not None and estimate.low <= 1 <= estimate.high
        print(f"{most} rounds at most: {false / draws:.1%} false verdicts, {covered / draws:.1%} cover, {draws} draws")
    print(f"from {len(ratios)} rounds")


def _ratio(blocks: list[tuple[float, bool]]) -> float | None:
    kept = [ratio for ratio, disturbed in blocks if not disturbed]
    return statistics.fmean(kept) if kept else None


def _stopped(ratios: list[float]) -> tuple[str, Estimate]:
    """The verdict at the first look that has one, or at the end."""
    for number in (*(look for look in LOOKS if look < len(ratios)), len(ratios)):
        last = number == len(ratios)
        look, final = (
            paired_difference(ratios[:number], ROUNDS_TRIMMED, level).exponential()
            for level in (LOOK_CONFIDENCE, SLICES_CONFIDENCE)
        )
        if last or speed_verdict(look, MARGIN) != "unclear":
            return speed_verdict(final, MARGIN), final
    raise AssertionError("the last number of rounds is always looked at")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    trying = verbs.add_parser("try")
    trying.add_argument("kind", choices=KINDS)
    trying.add_argument("folder", type=Path)
    trying.add_argument("--tries", type=int, default=60)
    trying.add_argument("--seconds", type=float, default=60.0)
    trying.add_argument("--minutes", type=float, default=9.0)
    for name in ("summary", "simulate"):
        other = verbs.add_parser(name)
        other.add_argument("folder", type=Path)
        other.add_argument("--draws", type=int, default=2000)
    options = parser.parse_args()
    match options.verb:
        case "try":
            tries(options.kind, options.folder, options.tries, options.seconds, options.minutes)
        case "summary":
            summary(options.folder)
        case _:
            simulate(options.folder, options.draws)


if __name__ == "__main__":
    main()
