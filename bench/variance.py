"""Where does the difference between equal processes come from?

    python bench/variance.py FOLDER [--cycles 10] [--minutes 9]

It compares mnist-mlp128 with PyTorch `fast` on the CPU with itself, by slices, one round of each
condition after the other:

    default      two processes, as they are
    no-aslr      without address space layout randomisation (setarch -R)
    bound        with each thread bound to a core (OMP_PROC_BIND)
    huge         malloc asks for huge pages (glibc.malloc.hugetlb=1)
    one-thread   with one thread
    one-process  two trainers in one process, made anew for every round

For each it prints the standard deviation of the log ratio between rounds, without what comes from
the blocks, and between the blocks of a round. Rounds are kept in FOLDER/variance.jsonl, so it can
be called again. Needs TRAINMARK_DATA.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from verdict import LABELS, WORKLOAD

from trainmark.analysis.slices import compare_slices, deviations
from trainmark.backends import registry
from trainmark.execute.parent.plan import Settings
from trainmark.execute.parent.probe import THIS, Interpreter
from trainmark.execute.parent.request import RunRequest
from trainmark.execute.parent.scheduler import RunObserver, execute
from trainmark.execute.parent.task import in_rounds
from trainmark.execute.parent.turns import SETTLE_SECONDS, SLICE_SECONDS, UNTIMED_SHARE
from trainmark.execute.worker.order import epoch_plans
from trainmark.record.store import Store
from trainmark.study.chosen import ChosenSide, choose
from trainmark.study.rounds import BLOCKS, slices_alone
from trainmark.workload.model import initial_weights, lay_out

ENVIRONMENTS: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "no-aslr": {},
    "bound": {"OMP_PROC_BIND": "true"},
    "huge": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
    "one-thread": {},
}
STEPS = 8
"""Number of steps in one call, in the slices of trainers that share a process."""


@contextmanager
def environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ |= changes
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def of_processes(condition: str, chosen: ChosenSide, python: Path) -> list[float]:
    """Return the log ratios of the blocks of one round."""
    path = python if condition == "no-aslr" else THIS.path
    sides = [
        dataclasses.replace(chosen.side, interpreter=Interpreter(label, path)) for label in LABELS
    ]
    settings = dataclasses.replace(
        chosen.settings, threads=1 if condition == "one-thread" else None
    )
    seen = {(side.backend, side.interpreter.label): chosen.seen for side in sides}
    scheduled = dataclasses.replace(chosen.scheduled, repeats=1)
    planned = [slices_alone(task) for task in in_rounds([(scheduled, sides)], settings)]
    with tempfile.TemporaryDirectory() as folder, environment(ENVIRONMENTS[condition]):
        records = execute(planned, seen, Store(Path(folder)), RunObserver())
    one, other = (
        [record for record in records if record.python.label == label] for label in LABELS
    )
    sliced = compare_slices(one, other)
    return (
        [block.log_ratio for blocks in sliced.rounds for block in blocks if not block.disturbed]
        if sliced
        else []
    )


def of_trainers(chosen: ChosenSide) -> list[float]:
    """Return the same for two trainers of this process."""
    workload = chosen.scheduled.workload
    data = chosen.scheduled.dataset.folder.load()
    model = lay_out(workload)
    backend = registry.load(chosen.side.backend)
    trainers = [backend.trainer(workload, model, data, chosen.options()) for _ in LABELS]
    plan = next(epoch_plans(workload, len(data.train), 0, inject=True))
    for trainer in trainers:
        trainer.load(initial_weights(model, 0))
        trainer.compile(plan)

    def slice_of(number: int, least: float) -> float:
        """Return the seconds of a step."""
        trainer = trainers[number]
        steps = 0
        start = time.perf_counter()
        while time.perf_counter() - start < least:
            trainer.begin_epoch(plan)
            trainer.train(STEPS, lambda: None)
            trainer.synchronize()
            steps += STEPS
        return (time.perf_counter() - start) / steps

    for number in (0, 1):
        slice_of(number, SETTLE_SECONDS)
    ratios = []
    for block in range(BLOCKS):
        logarithms: list[list[float]] = [[], []]
        for number in (0, 1, 1, 0) if block % 2 == 0 else (1, 0, 0, 1):
            slice_of(number, UNTIMED_SHARE * SLICE_SECONDS)
            logarithms[number].append(math.log(slice_of(number, SLICE_SECONDS)))
        ratios.append(statistics.fmean(logarithms[0]) - statistics.fmean(logarithms[1]))
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cycles", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=9.0)
    options = parser.parse_args()
    file = options.folder / "variance.jsonl"
    options.folder.mkdir(parents=True, exist_ok=True)
    request = RunRequest(
        workloads=(WORKLOAD,), backends=("torch",), styles=("fast",), devices=("cpu",),
        environment=Path(os.environ["TRAINMARK_DATA"]), settings=Settings(),
    )  # fmt: skip
    chosen = choose(request, None)
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as scratch:
        python = Path(scratch) / "python"
        python.write_text(f'#!/bin/sh\nexec {shutil.which("setarch")} -R {sys.executable} "$@"\n')
        python.chmod(0o755)
        conditions = [*ENVIRONMENTS, "one-process"]
        file.touch()
        while time.monotonic() < end and len(file.read_text().splitlines()) < options.cycles * len(
            conditions
        ):
            for condition in conditions:
                ratios = (
                    of_trainers(chosen)
                    if condition == "one-process"
                    else of_processes(condition, chosen, python)
                )
                with file.open("a") as opened:
                    opened.write(json.dumps({"condition": condition, "ratios": ratios}) + "\n")
    for condition in conditions:
        rounds = [
            said["ratios"]
            for line in file.open()
            if (said := json.loads(line))["condition"] == condition
        ]
        if (found := deviations(rounds)) is not None:
            print(
                f"{condition}: {found.between:.1%} between {len(rounds)} rounds, "
                f"{found.within:.1%} between blocks"
            )


if __name__ == "__main__":
    main()
