"""Do verdicts hold on this machine? Comparisons of sides whose true ratio is known, many times over.

    python bench/verdict.py try KIND,... FOLDER [--tries 60] [--minutes 9]    add tries to FOLDER/KIND.jsonl, in turn
    python bench/verdict.py summary FOLDER                                    what they say so far
    python bench/verdict.py simulate FOLDER [--draws 2000]                    comparisons drawn from their rounds

mnist-mlp128 with PyTorch `fast` on the CPU. A try is a comparison of --seconds (60), as `trainmark run` makes it, but
with rounds of slices alone. KIND is one of

    equal           a side and the same again
    old             the same by the protocol of version 0.1: one process after the other, two epochs each
    busy            equal, while two other processes compute
    comes-and-goes  equal, while two others compute for 3 s and sleep for 3 s
    nice            equal, while two others compute at low priority
    hooked-*        a script with the hook under `trainmark measure` instead: hooked-equal, hooked-busy, ...
    more-10, more-5 the second side takes one step in ten, or in twenty, twice
    threads, jax, gpu  1 thread against 2; PyTorch against JAX; the CPU against the first GPU
    long-threads, long-jax, long-gpu  the same by contiguous epochs of 10 s, one process after the other

`try` ends after --minutes, so it can be called again, on other days and machines. Needs TRAINMARK_DATA.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmark.analysis.bar import fail_below
from trainmark.analysis.comparison import MARGIN, compare
from trainmark.analysis.slices import compare_slices
from trainmark.analysis.statistics import (
    LOOK_CONFIDENCE,
    ROUNDS_TRIMMED,
    SLICES_CONFIDENCE,
    Estimate,
    paired_difference,
    speed_verdict,
)
from trainmark.execute.parent.command import Command
from trainmark.execute.parent.command import sides as command_sides
from trainmark.execute.parent.plan import Run, Settings
from trainmark.execute.parent.probe import THIS, Interpreter
from trainmark.execute.parent.request import Request
from trainmark.execute.parent.scheduler import Observer, execute
from trainmark.execute.parent.task import Task, in_rounds
from trainmark.measure.machine import cpu_load, cpu_name
from trainmark.record.record import Record, Slice, are_disturbed
from trainmark.record.store import Store
from trainmark.study.chosen import ChosenSide, choose
from trainmark.study.progress import Progress
from trainmark.study.rounds import LOOKS, Budget, rounds_within, slices_alone
from trainmark.study.run import RoundOptions, measure

WORKLOAD = "mnist-mlp128"
EPOCH_SECONDS = 0.7
"""About, of either framework with one thread or two; only how long contiguous runs are depends on it."""
LABELS = ("A", "B")
MORE_STEPS = {"more-10": 10, "more-5": 20}
"""With every how many steps one is taken twice."""
NEIGHBOURS = {
    "busy": "while True: pass",
    "comes-and-goes": "import time as t\nwhile True:\n end = t.time() + 3\n while t.time() < end: pass\n t.sleep(3)",
    "nice": "import os\nos.nice(19)\nwhile True: pass",
}
HOOKED = tuple(f"hooked-{kind}" for kind in ("equal", *NEIGHBOURS))
UNEQUAL = ("threads", "jax", "gpu", "long-threads", "long-jax", "long-gpu")
KINDS = ("equal", "old", *NEIGHBOURS, *HOOKED, *MORE_STEPS, *UNEQUAL)
LONG_SECONDS = 10.0
LOST = ("blocks", "others", "stolen")
SCRIPT = """
import sys, torch
from trainmark import hook
torch.manual_seed(0)
images, labels = torch.rand(19_200, 784), torch.randint(10, (19_200,))
model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(14):
    total = 0.0
    for rows in hook.batches(torch.randperm(len(images)).split(64)):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        total += loss.item()
    hook.epoch(loss=total / 300, examples=len(images))
"""
MORE = '''
"""PyTorch's `fast`, with one step in so many taken twice."""

import os
from trainmark.backends.base import Job
from trainmark.backends.torch.backend import TorchBackend
from trainmark.backends.torch.fast import TorchFastTrainer


class More(TorchFastTrainer):
    def _step_on(self, x, y, row):
        super()._step_on(x, y, row)
        if self._step % int(os.environ["EVERY"]) == 0:
            super()._step_on(x, y, row)


class MoreWork(TorchBackend):
    def trainer(self, workload, model, data, options):
        return More(Job(workload, model, data, options))
'''


def one_try(kind: str, chosen: Mapping[str, ChosenSide], seconds: float, folder: Path) -> dict[str, Any]:
    """One comparison, and what it said."""
    store, load, start = Store(folder), cpu_load(), time.perf_counter()
    match kind:
        case _ if kind in HOOKED:
            records = _hooked(store, seconds)
        case "old" | "long-threads" | "long-jax" | "long-gpu":
            records = _contiguous(kind, _tasks(kind, chosen), chosen, store, seconds)
        case _:
            planned = [slices_alone(task) for task in _tasks(kind, chosen)]
            records = rounds_within(Budget(seconds), planned, _carrying_out(planned, chosen, store))
    took = time.perf_counter() - start
    return {"kind": kind, "load_before": load, "seconds": took, **_said(records)}


def _tasks(kind: str, chosen: Mapping[str, ChosenSide]) -> list[Task[Run]]:
    """One round; the sides are told apart by the label of their interpreter."""
    first, what = chosen["torch"], kind.removeprefix("long-")
    second = chosen.get(what, first).side
    if kind in MORE_STEPS:
        second = dataclasses.replace(second, backend="more")
    sides = [
        dataclasses.replace(side, interpreter=Interpreter(label, THIS.path))
        for side, label in zip((first.side, second), LABELS, strict=True)
    ]
    planned = in_rounds([(first.course, sides)], first.settings)
    if what != "threads":
        return planned
    settings = [dataclasses.replace(first.settings, threads=threads) for threads in (1, 2)]
    return [
        Task((dataclasses.replace(task.first, settings=each),)) for task, each in zip(planned, settings, strict=True)
    ]


def _carrying_out(
    planned: Sequence[Task[Run]], chosen: Mapping[str, ChosenSide], store: Store
) -> Callable[[list[Task[Run]]], list[Record]]:
    sides = [task.first.side for task in planned]
    seen = {(side.backend, side.interpreter.label): chosen.get(side.backend, chosen["torch"]).seen for side in sides}
    return lambda tasks: execute(tasks, seen, store, Observer())


def _contiguous(
    kind: str, planned: list[Task[Run]], chosen: Mapping[str, ChosenSide], store: Store, seconds: float
) -> list[Record]:
    """One process after the other, in the order of the plan or, of long ones, in changing order."""
    start, records, round_ = time.perf_counter(), list[Record](), 0
    carry_out = _carrying_out(planned, chosen, store)
    epochs = 2 if kind == "old" else 1 + max(1, round(LONG_SECONDS / EPOCH_SECONDS))
    while time.perf_counter() - start < seconds or round_ < 3:
        for task in planned[:: -1 if round_ % 2 and kind != "old" else 1]:
            workload = task.first.course.workload.with_schedule(epochs=epochs, steps=None)
            course = dataclasses.replace(task.first.course, workload=workload)
            records += carry_out([Task((dataclasses.replace(task.first, course=course),)).in_round(round_)])
        round_ += 1
    return records


def _hooked(store: Store, seconds: float) -> list[Record]:
    script = store.folder / "train.py"
    script.write_text(SCRIPT)
    command = Command("train.py", (sys.executable, str(script), "{side}"), store.folder)
    options = RoundOptions(budget=Budget(seconds))
    return measure(command, command_sides(command, (), {"side": LABELS}), 1, Settings(), store, Progress(), options)[0]


def _said(records: list[Record]) -> dict[str, Any]:
    sides = [[record for record in records if _label(record) == label] for label in LABELS]
    comparison = compare([*sides[0], *sides[1]])
    these = next(group for position, group in enumerate(comparison.groups) if not comparison.is_reference(position))
    sliced = compare_slices(*sides)
    return {
        "fails_below": bool(fail_below(comparison, 0.95).missed),
        "lost": [_lost(side) for side in sides],
        "verdict": these.speedup.verdict,
        **{name: getattr(these.speedup, name) for name in ("ratio", "low", "high")},
        "caveats": [caveat.value for caveat in these.caveats],
        "rounds": [[dataclasses.astuple(block) for block in blocks] for blocks in sliced.rounds] if sliced else [],
        "failed": [record.outcome.reason for record in records if record.outcome.status != "ok"],
        "timed_share": _timed_share(records),
    }


def _label(record: Record) -> str | None:
    return record.python.label or (record.backend.style or "").removeprefix("side=")


def _lost(side: Sequence[Record]) -> dict[str, int]:
    """Of how many blocks of a side its own slices were disturbed, and whether by what is seen here or on the host."""
    blocks: dict[tuple[int, int], list[Slice]] = {}
    for record in side:
        for each in record.slices:
            blocks.setdefault((record.round, each.block), []).append(each)
    lost = [block for block in blocks.values() if are_disturbed(block)]
    stolen = sum(
        sum(each.stolen_share or 0.0 for each in block) > sum(each.others_share or 0.0 for each in block)
        for block in lost
    )
    return dict(zip(LOST, (len(blocks), len(lost) - stolen, stolen), strict=True))


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
    code = NEIGHBOURS.get(kind.removeprefix("hooked-"))
    started = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)] if code else []
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


def tries(kinds: Sequence[str], folder: Path, most: int, seconds: float, minutes: float) -> None:
    """Add tries of each kind in turn, until there are ``most`` of each, or the minutes are over."""
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * minutes - seconds
    environment = Path(os.environ["TRAINMARK_DATA"])
    chosen = {
        what: choose(
            Request(
                workloads=(WORKLOAD,), backends=(backend,), styles=("fast",), devices=(device,),
                environment=environment, settings=Settings(),
            ),
            None,
        )
        for what, backend, device in (("torch", "torch", "cpu"), ("jax", "jax", "cpu"), ("gpu", "torch", "cuda:0"))
        if what == "torch" or any(what in kind for kind in kinds)
    }  # fmt: skip
    while wanted := [kind for kind in kinds if len(_read(folder / f"{kind}.jsonl")) < most]:
        for kind in wanted:
            if time.monotonic() > end:
                return
            with more_work(MORE_STEPS.get(kind, 1)), neighbours(kind), tempfile.TemporaryDirectory() as out:
                said = one_try(kind, chosen, seconds, Path(out))
            at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
            with (folder / f"{kind}.jsonl").open("a") as opened:
                opened.write(json.dumps({"at": at, "machine": cpu_name(), **said}) + "\n")
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
        failed = sum(each["fails_below"] for each in said)
        print(
            f"{kind}: {len(said)} tries, {', '.join(f'{number} {name}' for name, number in verdicts.items())}; "
            f"withheld {withheld}; half-width, median {statistics.median(widths):.1%}"
            + (f"; timed {statistics.fmean(shares):.0%} of the time" if shares else "")
            if widths
            else f"{kind}: {len(said)} tries without an interval"
        )
        ratio = statistics.median(each["ratio"] for each in said)
        print(f"    ratio, median: {ratio:.3f}; --fail-below 0.95 fails {failed}")
        for side, label in enumerate(LABELS):
            blocks, others, stolen = (sum(each["lost"][side][name] for each in said) for name in LOST)
            print(f"    {label} has {blocks} blocks; lost to others {others}, to the host {stolen}")


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
    trying.add_argument("kinds", type=lambda text: text.split(","), metavar="KIND,...")
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
            tries(options.kinds, options.folder, options.tries, options.seconds, options.minutes)
        case "summary":
            summary(options.folder)
        case _:
            simulate(options.folder, options.draws)


if __name__ == "__main__":
    main()
