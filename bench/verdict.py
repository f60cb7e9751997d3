"""Do verdicts hold on this machine? Comparisons of sides whose true ratio is known, many times
over.

    python bench/verdict.py try KIND,... FOLDER [--tries 60] [--minutes 9]
    python bench/verdict.py summary FOLDER
    python bench/verdict.py simulate FOLDER [--draws 2000]

`try` adds tries to FOLDER/KIND.jsonl, one of each kind in turn. `summary` prints the verdicts so
far. `simulate` draws comparisons from the rounds of `equal`.

The workload is mnist-mlp128 with PyTorch `fast` on the CPU. A try is a comparison of --seconds
(60), as `trainmark run` makes it, but with rounds of slices alone. KIND is one of

    equal           two equal sides
    whole           equal, with three complete trainings, the default of `trainmark run`
    old             equal, by the protocol before slices: one process after the other, two epochs
                    each
    busy            equal, while two other processes compute
    comes-and-goes  equal, while two others compute for 3 s and sleep for 3 s
    nice            equal, while two others compute at low priority
    hooked-*        a script with the hook under `trainmark measure`: hooked-equal, hooked-busy, ...
    hooked-thrice   such a script whose second side computes three times as long for every step
    more-10, more-5 the second side takes one step in ten, or in twenty, twice
    thrice          the second side takes every step three times
    opened-*        with an opening and a short training: opened-equal, opened-more-5, ...
    threads         1 thread against 2
    jax             PyTorch against JAX
    gpu             the CPU against the first GPU
    long-*          threads, jax and gpu by contiguous epochs of 10 s, one process after the other

`try` ends after --minutes, so it can be called again, on other days and machines. A false verdict
is `faster` or `slower` between equal sides; one is withheld where others disturbed too much. Needs
TRAINMARK_DATA.
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

from trainmark.analysis.comparison import MARGIN, by_slices, compare
from trainmark.analysis.fail_below import fail_below
from trainmark.analysis.results import Speedup
from trainmark.analysis.slices import Block, SliceComparison, compare_slices
from trainmark.analysis.statistics import LOOK_CONFIDENCE, SLICES_CONFIDENCE, paired_difference
from trainmark.execute.parent.command import Command
from trainmark.execute.parent.command import sides as command_sides
from trainmark.execute.parent.opening import OpeningListener
from trainmark.execute.parent.plan import Run, Settings
from trainmark.execute.parent.probe import THIS, Interpreter
from trainmark.execute.parent.request import RunRequest
from trainmark.execute.parent.scheduler import RunObserver, execute
from trainmark.execute.parent.task import Task, in_rounds
from trainmark.measure.machine import cpu_name
from trainmark.measure.neighbours import read_load
from trainmark.record.record import Record, Slice, are_disturbed
from trainmark.record.store import Store
from trainmark.study.chosen import ChosenSide, choose
from trainmark.study.observer import StudyObserver
from trainmark.study.rounds import LOOKS, Budget, rounds_within, slices_alone
from trainmark.study.run import RoundOptions, measure
from trainmark.version import version

WORKLOAD = "mnist-mlp128"
EPOCH_SECONDS = 0.7
"""Approximate seconds of an epoch, of either framework with one thread or two; only the length of
contiguous runs depends on it."""
LABELS = ("A", "B")
MORE_STEPS = {"more-10": (10, 2), "more-5": (20, 2), "thrice": (1, 3)}
"""The interval between repeated steps, in steps, and how often such a step runs in total."""
OPENED = tuple(f"opened-{kind}" for kind in ("equal", "more-5", "thrice"))
OPENED_STEPS = 200
"""Steps of a training after an opening, a fifth of an epoch: these tries are about speed."""
NEIGHBOURS = {
    "busy": "while True: pass",
    "comes-and-goes": "import time as t\nwhile True:\n end = t.time() + 3\n while t.time() < "
    "end: pass\n t.sleep(3)",
    "nice": "import os\nos.nice(19)\nwhile True: pass",
}
HOOKED = tuple(f"hooked-{kind}" for kind in ("equal", "thrice", *NEIGHBOURS))
UNEQUAL = ("threads", "jax", "gpu", "long-threads", "long-jax", "long-gpu")
KINDS = ("equal", "whole", "old", *NEIGHBOURS, *HOOKED, *MORE_STEPS, *OPENED, *UNEQUAL)
DISTURBED = (
    *NEIGHBOURS,
    *(kind for kind in HOOKED if kind not in ("hooked-equal", "hooked-thrice")),
)
PAUSE = datetime.timedelta(minutes=30)
"""Tries that are further apart were made at different times."""
LONG_SECONDS = 10.0
FEWEST_ROUNDS = 20
LOST = ("blocks", "others", "stolen")
SCRIPT = """
import sys, time, torch
from trainmark import hook
times = int(sys.argv[2]) if sys.argv[1] == "B" else 1
torch.manual_seed(0)
images = torch.rand(19_200, 784)
labels = (images @ torch.rand(784, 10)).argmax(1)
model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
other = torch.rand(784, 128)
for epoch in range(14):
    total = 0.0
    for rows in hook.batches(torch.randperm(len(images)).split(64)):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        total += loss.item()
        # Compute rather than wait: after a pause, the next step takes longer.
        end = start + times * (time.perf_counter() - start)
        while time.perf_counter() < end:
            images[rows] @ other
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
            for _ in range(int(os.environ["TIMES"]) - 1):
                super()._step_on(x, y, row)


class MoreWork(TorchBackend):
    def trainer(self, workload, model, data, options):
        return More(Job(workload, model, data, options))
'''


class KeptMessages(StudyObserver):
    """Keeps the messages of a study with their times."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self.said: list[tuple[float, str]] = []

    def message(self, text: str) -> None:
        """Keep a sentence."""
        self.said.append((time.perf_counter() - self._start, text))


def one_try(
    kind: str, chosen: Mapping[str, ChosenSide], seconds: float, folder: Path
) -> dict[str, Any]:
    """One comparison, and its answer."""
    store = Store(folder)
    load = read_load().taken
    start = time.perf_counter()
    told = KeptMessages()
    match kind:
        case _ if kind in HOOKED:
            records = _hooked(kind, store, seconds, told)
        case _ if kind in OPENED:
            planned = [_shortened(task) for task in _tasks(kind.removeprefix("opened-"), chosen)]
            records = rounds_within(
                Budget(seconds), planned, _carrying_out(planned, chosen, store), told.message
            )
        case "old" | "long-threads" | "long-jax" | "long-gpu":
            records = _contiguous(kind, _tasks(kind, chosen), chosen, store, seconds)
        case _:
            planned = _tasks(kind, chosen, rounds=3 if kind == "whole" else 1)
            planned = planned if kind == "whole" else [slices_alone(task) for task in planned]
            records = rounds_within(
                Budget(seconds), planned, _carrying_out(planned, chosen, store), told.message
            )
    took = time.perf_counter() - start
    return {
        "kind": kind,
        "version": version(),
        "load_before": load,
        "asked": seconds,
        "seconds": took,
        "told": told.said,
        **_said(records),
    }


def _tasks(kind: str, chosen: Mapping[str, ChosenSide], rounds: int = 1) -> list[Task[Run]]:
    """The sides are distinguished by the label of their interpreter."""
    first = chosen["torch"]
    what = kind.removeprefix("long-")
    second = chosen.get(what, first).side
    if kind in MORE_STEPS:
        second = dataclasses.replace(second, backend="more")
    sides = [
        dataclasses.replace(side, interpreter=Interpreter(label, THIS.path))
        for side, label in zip((first.side, second), LABELS, strict=True)
    ]
    planned = in_rounds(
        [(dataclasses.replace(first.scheduled, repeats=rounds), sides)], first.settings
    )
    if what != "threads":
        return planned
    settings = [dataclasses.replace(first.settings, threads=threads) for threads in (1, 2)]
    return [
        Task((dataclasses.replace(task.first, settings=each),))
        for task, each in zip(planned, settings, strict=True)
    ]


def _shortened(task: Task[Run]) -> Task[Run]:
    """Return the same task with a short training."""
    scheduled = task.first.scheduled
    workload = scheduled.workload.with_schedule(steps=OPENED_STEPS)
    return Task(
        (
            dataclasses.replace(
                task.first, scheduled=dataclasses.replace(scheduled, workload=workload)
            ),
        )
    )


def _carrying_out(
    planned: Sequence[Task[Run]], chosen: Mapping[str, ChosenSide], store: Store
) -> Callable[..., list[Record]]:
    sides = [task.first.side for task in planned]
    seen = {
        (side.backend, side.interpreter.label): chosen.get(side.backend, chosen["torch"]).seen
        for side in sides
    }

    def carry_out(
        tasks: list[Task[Run]], opening: OpeningListener | None = None, /
    ) -> list[Record]:
        return execute(tasks, seen, store, RunObserver(), opening=opening)

    return carry_out


def _contiguous(
    kind: str,
    planned: list[Task[Run]],
    chosen: Mapping[str, ChosenSide],
    store: Store,
    seconds: float,
) -> list[Record]:
    """Run one process after the other, in the order of the plan or, for long ones, in changing
    order."""
    start = time.perf_counter()
    records = list[Record]()
    round_ = 0
    carry_out = _carrying_out(planned, chosen, store)
    epochs = 2 if kind == "old" else 1 + max(1, round(LONG_SECONDS / EPOCH_SECONDS))
    while time.perf_counter() - start < seconds or round_ < 3:
        for task in planned[:: -1 if round_ % 2 and kind != "old" else 1]:
            workload = task.first.scheduled.workload.with_schedule(epochs=epochs, steps=None)
            scheduled = dataclasses.replace(task.first.scheduled, workload=workload)
            records += carry_out(
                [Task((dataclasses.replace(task.first, scheduled=scheduled),)).in_round(round_)]
            )
        round_ += 1
    return records


def _hooked(kind: str, store: Store, seconds: float, told: KeptMessages) -> list[Record]:
    script = store.folder / "train.py"
    script.write_text(SCRIPT)
    times = "3" if kind == "hooked-thrice" else "1"
    command = Command("train.py", (sys.executable, str(script), "{side}", times), store.folder)
    options = RoundOptions(budget=Budget(seconds))
    return measure(
        command, command_sides(command, (), {"side": LABELS}), 1, Settings(), store, told, options
    ).records


def _said(records: list[Record]) -> dict[str, Any]:
    sides = [[record for record in records if _label(record) == label] for label in LABELS]
    comparison = compare([*sides[0], *sides[1]])
    these = next(
        group
        for position, group in enumerate(comparison.groups)
        if not comparison.is_reference(position)
    )
    sliced = compare_slices(*sides)
    return {
        "fails_below": bool(fail_below(comparison, 0.95).missed),
        "lost": _lost(sides),
        "verdict": these.speedup.verdict,
        **{name: getattr(these.speedup, name) for name in ("ratio", "low", "high")},
        "caveats": [caveat.value for caveat in these.caveats],
        "rounds": [
            [(block.log_ratio, block.disturbed) for block in blocks] for blocks in sliced.rounds
        ]
        if sliced
        else [],
        "failed": [record.outcome.reason for record in records if record.outcome.status != "ok"],
        "timed_share": _timed_share(records),
    }


def _label(record: Record) -> str | None:
    return record.python.label or (record.backend.style or "").removeprefix("side=")


def _lost(sides: Sequence[Sequence[Record]]) -> list[dict[str, int]]:
    """Number of blocks, as the tool judges them, in which more was taken in a side's own slices
    than in the other's.

    It also says whether processes seen here took it, or the host.
    """
    blocks: dict[tuple[int, int], list[list[Slice]]] = {}
    for number, side in enumerate(sides):
        for record in side:
            for each in record.slices:
                blocks.setdefault((record.round, each.block), [[], []])[number].append(each)
    lost = [dict.fromkeys(LOST, 0) | {"blocks": len(blocks)} for _ in sides]
    for of_sides in blocks.values():
        if are_disturbed([each for of_side in of_sides for each in of_side]):
            taken = [
                [_taken(of_side, name) for name in ("others_share", "stolen_share")]
                for of_side in of_sides
            ]
            worst = max(range(2), key=lambda number: sum(taken[number]))
            lost[worst]["stolen" if taken[worst][1] > taken[worst][0] else "others"] += 1
    return lost


def _taken(slices: Sequence[Slice], name: str) -> float:
    return sum((getattr(each, name) or 0.0) * each.seconds for each in slices)


def _timed_share(records: Sequence[Record]) -> float | None:
    """Share of the time from the first slice of a round to its last that is timed.

    The clock is that of one process, whose slices lie among those of the others.
    """
    shares = []
    for number in {record.round for record in records}:
        of_round = [record for record in records if record.round == number and record.slices]
        if of_round:
            own = of_round[0].slices
            start = own[0].start_seconds
            last = own[-1]
            end = last.start_seconds + last.seconds * last.steps / last.timed_steps
            shares.append(
                sum(each.seconds for record in of_round for each in record.slices) / (end - start)
            )
    return statistics.fmean(shares) if shares else None


@contextlib.contextmanager
def neighbours(kind: str) -> Iterator[None]:
    """Run two other processes that compute."""
    code = NEIGHBOURS.get(kind.removeprefix("hooked-"))
    started = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)] if code else []
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextlib.contextmanager
def more_work(every: int, times: int) -> Iterator[None]:
    """The backend that takes one of ``every`` steps ``times`` times is installed."""
    with tempfile.TemporaryDirectory() as scratch:
        information = Path(scratch) / "more-1.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: more\nVersion: 1.0\n")
        (information / "entry_points.txt").write_text(
            "[trainmark.backends]\nmore = more:MoreWork\n"
        )
        (Path(scratch) / "more.py").write_text(MORE)
        before = os.environ.get("PYTHONPATH", "")
        os.environ |= {
            "PYTHONPATH": os.pathsep.join(filter(None, (scratch, before))),
            "EVERY": str(every),
            "TIMES": str(times),
        }
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
            RunRequest(
                workloads=(WORKLOAD,),
                backends=(backend,),
                styles=("fast",),
                devices=(device,),
                environment=environment,
                settings=Settings(),
            ),
            None,
        )
        for what, backend, device in (
            ("torch", "torch", "cpu"),
            ("jax", "jax", "cpu"),
            ("gpu", "torch", "cuda:0"),
        )
        if what == "torch" or any(what in kind for kind in kinds)
    }
    while wanted := [kind for kind in kinds if len(_read(folder / f"{kind}.jsonl")) < most]:
        for kind in wanted:
            if time.monotonic() > end:
                return
            more = MORE_STEPS.get(kind.removeprefix("opened-"), (1, 1))
            with more_work(*more), neighbours(kind), tempfile.TemporaryDirectory() as out:
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
        f"{said['kind']}: {said['verdict']}, {said['ratio'] or math.nan:.3f}{interval}, "
        f"{len(said['rounds'])} rounds, "
        f"{left_out} of {len(blocks)} blocks left out, load before {said['load_before']:.0%}"
    )


def _read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def summary(folder: Path) -> None:
    """Print for each kind of comparison how often each verdict was given, how wide the intervals
    are, and how many blocks were left out; then the thresholds."""
    tries = {kind: said for kind in KINDS if (said := _read(folder / f"{kind}.jsonl"))}
    for kind, said in tries.items():
        print(
            f"{kind}: {len(said)} tries, {_verdicts(said)}; half-width, median "
            f"{_median_width(said):.1%}"
        )
        ratios = [each["ratio"] for each in said if each["ratio"]]
        shares = [each["timed_share"] for each in said if each["timed_share"]]
        failed = sum(bool(each["failed"]) for each in said)
        print(
            f"    ratio, median: {statistics.median(ratios):.3f}"
            + (f"; timed {statistics.fmean(shares):.0%} of the time" if shares else "")
            + f"; --fail-below 0.95 fails {sum(each['fails_below'] for each in said)}; failed "
            f"runs in {failed}"
        )
        for side, label in enumerate(LABELS):
            blocks, others, stolen = (
                sum(each["lost"][side][name] for each in said) for name in LOST
            )
            if blocks:
                print(
                    f"    {label} has {blocks} blocks; lost to others {others}, to the host "
                    f"{stolen}"
                )
    print()
    if equal := tries.get("equal"):
        covered = [each["low"] <= 1 <= each["high"] for each in equal if each["low"]]
        print(f"equal: {sum(covered)} of {len(covered)} intervals hold 1; {_when(equal)}")
        quiet = [each for each in equal if not any(disturbed for _, disturbed in _blocks(each))]
        if quiet:
            print(
                f"equal, no block disturbed: {len(quiet)} tries, half-width, median "
                f"{_median_width(quiet):.1%}"
            )
        if old := tries.get("old"):
            print(
                f"equal / old, median half-widths: {_median_width(equal) / _median_width(old):.2f}"
            )
    if pooled := [each for kind in DISTURBED for each in tries.get(kind, ())]:
        failing = sum(each["fails_below"] for each in pooled)
        print(
            f"neighbours, pooled: {len(pooled)} tries, {_verdicts(pooled)}; --fail-below 0.95 "
            f"fails {failing}"
        )
    for kind in MORE_STEPS:
        judged = [each for each in tries.get(kind, ()) if not _is_withheld(each)]
        if judged:
            found = sum(each["verdict"] == "slower" for each in judged)
            print(f"{kind}: slower in {found} of {len(judged)} that were not withheld")
    for kind in ("threads", "jax", "gpu"):
        long = tries.get(f"long-{kind}")
        short = tries.get(kind)
        if long and short:
            truth = statistics.median(each["ratio"] for each in long)
            held = [each["low"] <= truth <= each["high"] for each in short if each["low"]]
            print(
                f"{kind}: contiguous {truth:.3f}, which {sum(held)} of {len(held)} intervals "
                "of slices hold"
            )


def _is_withheld(each: dict[str, Any]) -> bool:
    return "too-disturbed" in each["caveats"]


def _verdicts(said: Sequence[dict[str, Any]]) -> str:
    counts = {
        name: sum(each["verdict"] == name for each in said)
        for name in ("faster", "slower", "same", "unclear")
    }
    withheld = sum(map(_is_withheld, said))
    return (
        f"{', '.join(f'{number} {name}' for name, number in counts.items())}, {withheld} of "
        "these withheld"
    )


def _median_width(said: Sequence[dict[str, Any]]) -> float:
    """A try without an interval has no end."""
    return statistics.median(
        math.sqrt(each["high"] / each["low"]) - 1 if each["low"] else math.inf for each in said
    )


def _blocks(each: dict[str, Any]) -> list[tuple[float, bool]]:
    return [block for blocks in each["rounds"] for block in blocks]


def _when(said: Sequence[dict[str, Any]]) -> str:
    machines = {each["machine"] for each in said}
    return f"made at {len(times(said))} times, on {', '.join(sorted(machines))}"


def times(said: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Group the tries by when they were made."""
    found: list[list[dict[str, Any]]] = []
    for each in sorted(said, key=lambda each: each["at"]):
        at = datetime.datetime.fromisoformat(each["at"])
        if not found or at - datetime.datetime.fromisoformat(found[-1][-1]["at"]) > PAUSE:
            found.append([])
        found[-1].append(each)
    return found


def simulate(folder: Path, draws: int, seed: int = 1) -> None:
    """Comparisons of equal sides, each of whole rounds drawn from those of ``equal`` at one time,
    and stopped as the tool stops.

    Equal sides can be exchanged, so which one is the second is drawn for each round; whether the
    order of measuring favours one shows in the mean of all rounds of one time.
    """
    pools = [
        [_numbered(blocks) for each in at_one_time for blocks in each["rounds"] if blocks]
        for at_one_time in times(_read(folder / "equal.jsonl"))
    ]
    for pool in pools:
        mean = paired_difference(
            [statistics.fmean(block.log_ratio for block in blocks) for blocks in pool]
        )
        interval = "" if mean.low is None else f" [{mean.low:+.4f}, {mean.high:+.4f}]"
        print(f"{len(pool)} rounds of one time: mean log ratio {mean.value:+.4f}{interval}")
    pools = [pool for pool in pools if len(pool) >= FEWEST_ROUNDS]
    print(f"drawn from {len(pools)} times with {FEWEST_ROUNDS} rounds or more")
    rng = random.Random(seed)
    for most in (3, 4, 6, 12, 24):
        false = covered = known = 0
        for _ in range(draws):
            pool = rng.choice(pools)
            drawn = [_turned(rng.choice(pool), rng.choice((-1, 1))) for _ in range(most)]
            found = _stopped(drawn)
            false += found.verdict in ("faster", "slower")
            if found.low is not None and found.high is not None:
                known = known + 1
                covered = covered + (found.low <= 1 <= found.high)
        print(
            f"{most} rounds at most: {false / draws:.1%} false verdicts, {covered / known:.1%} "
            f"cover, {draws} draws"
        )


def _numbered(blocks: Sequence[tuple[float, bool]]) -> tuple[Block, ...]:
    return tuple(Block(number, *block) for number, block in enumerate(blocks))


def _turned(blocks: Sequence[Block], sign: int) -> tuple[Block, ...]:
    return tuple(dataclasses.replace(block, log_ratio=sign * block.log_ratio) for block in blocks)


def _stopped(rounds: Sequence[tuple[Block, ...]]) -> Speedup:
    """Return the comparison at the first look that decides, or at the end."""
    for number in (*(look for look in LOOKS if look < len(rounds)), len(rounds)):
        sliced = SliceComparison(tuple(rounds[:number]))
        look, final = (
            by_slices(sliced, MARGIN, level, learns=True)[0]
            for level in (LOOK_CONFIDENCE, SLICES_CONFIDENCE)
        )
        if number == len(rounds) or look.verdict == final.verdict != "unclear":
            return final
    raise AssertionError("the last number of rounds is always looked at")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
