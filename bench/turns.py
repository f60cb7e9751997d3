"""What do turns cost those that take them?

    python bench/turns.py [--minutes 3]

It prints how much of a core each framework's process uses while it waits for its turn, and how much
longer JAX's loop takes when an epoch is trained in calls of a slice each instead of in one.
mnist-mlp128, `fast`, on the CPU. Needs TRAINMARK_DATA and a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from functools import partial
from pathlib import Path

import psutil

from trainmark.analysis.statistics import paired_difference
from trainmark.backends import registry
from trainmark.execute.parent.process import Listener, Worker
from trainmark.execute.parent.request import RunRequest
from trainmark.execute.parent.task import in_rounds
from trainmark.execute.parent.turns import SETTLE_SECONDS, SLICE_SECONDS, UNTIMED_SHARE
from trainmark.execute.protocol.answers import Answer, Waiting
from trainmark.execute.protocol.worker_commands import TakeTurn
from trainmark.execute.worker.order import epoch_plans
from trainmark.study.chosen import ChosenSide, choose
from trainmark.workload.model import initial_weights, lay_out

WORKLOAD = "mnist-mlp128"
BACKENDS = ("torch", "jax", "keras")
IDLE_SECONDS = 10.0


def chosen(backend: str) -> ChosenSide:
    environment = Path(os.environ["TRAINMARK_DATA"])
    asked = RunRequest(
        workloads=(WORKLOAD,),
        backends=(backend,),
        styles=("fast",),
        devices=("cpu",),
        environment=environment,
    )
    return choose(asked, None)


def idle_share(side: ChosenSide) -> float:
    """CPU time of the process, as a share of a core, while it waits for its second turn."""
    run = in_rounds([(side.scheduled, [side.side])], side.settings)[0].first
    waits: list[Answer] = []

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, Waiting):
            waits.append(answer)

    with Worker(
        run.python, partial(run.request, weight_files=[None], in_turns=True), on_answer=on_answer
    ) as worker:
        listener = Listener()
        for turn in (1, 2):
            while len(waits) < turn:
                if (ending := worker.attend(listener.wait([worker])[worker])) is not None:
                    raise SystemExit(f"{side.side.title}: {ending.reason}\n{ending.tail}")
            if turn == 1:
                worker.send(TakeTurn(SETTLE_SECONDS))
        before = _cpu_seconds(worker.pid)
        time.sleep(IDLE_SECONDS)
        return (_cpu_seconds(worker.pid) - before) / IDLE_SECONDS


def _cpu_seconds(pid: int) -> float:
    process = psutil.Process(pid)
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


def chunks(side: ChosenSide, minutes: float) -> None:
    """Epochs in one call against epochs in calls of a slice each, interleaved."""
    workload = side.scheduled.workload
    data = side.scheduled.dataset.folder.load()
    model = lay_out(workload)
    trainer = registry.load(side.side.backend).trainer(workload, model, data, side.options())
    trainer.load(initial_weights(model, 0))
    plan = next(epoch_plans(workload, len(data.train), 0, inject=True))
    trainer.compile(plan)
    total = len(plan.sizes)

    def epoch(longest: int) -> float:
        trainer.begin_epoch(plan)
        trainer.synchronize()
        start = time.perf_counter()
        for first in range(0, total, longest):
            trainer.train(min(longest, total - first), lambda: None)
            trainer.synchronize()
        return time.perf_counter() - start

    step = min(epoch(total) for _ in range(3)) / total
    slice_steps = max(1, round(SLICE_SECONDS * (1 - UNTIMED_SHARE) / step))
    differences: list[float] = []
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        first, second = (total, slice_steps) if len(differences) % 2 else (slice_steps, total)
        seconds: dict[int, list[float]] = {total: [], slice_steps: []}
        for longest in (first, second, second, first):
            seconds[longest].append(math.log(epoch(longest)))
        differences.append(
            statistics.fmean(seconds[slice_steps]) - statistics.fmean(seconds[total])
        )
    found = paired_difference(differences).exponential()
    print(
        f"{side.side.title}: an epoch of {total} steps in calls of {slice_steps} takes "
        f"{found.value:.4f} "
        f"[{found.low:.4f}, {found.high:.4f}] of its time in one call, {len(differences)} blocks"
    )
    print(f"    compiled programs: {len(vars(trainer)['_compiled'])}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=3.0)
    options = parser.parse_args()
    for backend in BACKENDS:
        side = chosen(backend)
        print(
            f"{side.side.title}: {idle_share(side):.2%} of a core while it waits, "
            f"{IDLE_SECONDS:g} s",
            flush=True,
        )
    chunks(chosen("jax"), options.minutes)


if __name__ == "__main__":
    main()
