"""What trainmark costs: a steady epoch under `trainmark run` against the same loop in a bare
script.

    python bench/overhead.py [--pairs 15] [--workload NAME --workload NAME] [--out FILE.json]
    python bench/overhead.py --sampler 400 [--times 4] [--out FILE.json]

Pairs of processes alternate (A B, B A, ...), so that a drift of the machine meets both. Each
process trains two epochs; the first is warm-up. A ratio above 1 means trainmark is slower.

With `--sampler` the cost of sampling alone: one training of mnist-mlp512 with torch `fast` in
epochs of 100 steps, of which every second one is watched; the ratio of the watched epoch to the
unwatched one of each pair, and the CPU time that watching itself took. Others on the machine
disturb for seconds, so hundreds of short pairs tell more than some long ones. With `--times` the
looks follow each other this many times faster, and the excess is divided by as much: the cost is
too small to be seen at its own pace, and so stands out of the noise.

Needs TRAINMARK_DATA with MNIST, and a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

from trainmark.analysis.statistics import paired_difference
from trainmark.data.locate import locate
from trainmark.execute.parent import process as child
from trainmark.execute.parent import request as run_requests
from trainmark.execute.parent.plan import Run, Settings
from trainmark.execute.parent.scheduler import RunObserver, execute
from trainmark.execute.parent.task import Task
from trainmark.execute.protocol.answers import Answer, EpochEnded
from trainmark.measure.sampler import INTERVAL_SECONDS, Sampler
from trainmark.record.store import Store, load

EPOCHS = 2
BARE = Path(__file__).with_name("bare_torch.py")


def bare(workload: str, mnist: Path) -> float:
    """Return the seconds of a steady epoch of the bare script."""
    answer = subprocess.run(
        [sys.executable, BARE, workload, mnist, str(EPOCHS)],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(json.loads(answer.stdout)["seconds"][-1])


def measured(workload: str) -> float:
    """Return the seconds of a steady epoch under trainmark."""
    with tempfile.TemporaryDirectory() as out:
        arguments = [
            "--backend",
            "torch",
            "--style",
            "idiomatic",
            "--device",
            "cpu",
            "--epochs",
            str(EPOCHS),
        ]
        subprocess.run(
            [
                sys.executable,
                "-m",
                "trainmark",
                "run",
                workload,
                *arguments,
                "--repeats",
                "1",
                "--out",
                out,
            ],
            check=True,
            capture_output=True,
        )
        (record,) = load([Path(out)])
        return record.epochs[-1].seconds


def is_watched(epoch: int) -> bool:
    """Alternate off, on, on, off, ..., so that a drift of the machine meets both."""
    return epoch % 4 in (1, 2)


class EverySecondEpoch(Sampler):
    """Samples in watched epochs only."""

    epoch = 0

    def sample(self) -> None:
        if is_watched(self.epoch):
            super().sample()


class SampledObserver(RunObserver):
    """Tells the sampler which epoch has begun."""

    def __init__(self, sampler: EverySecondEpoch) -> None:
        self._sampler = sampler

    def answered(self, task: Task[Any], answer: Answer) -> None:  # noqa: ARG002
        if isinstance(answer, EpochEnded):
            self._sampler.epoch = answer.index + 1


def _in_short_epochs(task: Task[Run]) -> Task[Run]:
    """Return the same training, cut into epochs of 100 steps and evaluated at the end only."""
    runs = []
    for run in task.runs:
        workload = run.scheduled.workload.with_schedule(steps_per_epoch=100, evaluate="end")
        runs.append(replace(run, scheduled=replace(run.scheduled, workload=workload)))
    return replace(task, runs=tuple(runs))


def sampling(pairs: int, times: int, device: str, folder: Path) -> dict[str, Any]:
    """What watching costs, in ``pairs`` of epochs, ``times`` as often as usual."""
    child.LOOK_EVERY_SECONDS /= times
    request = run_requests.RunRequest(
        workloads=("mnist-mlp512",), backends=("torch",), styles=("fast",), devices=(device,),
        epochs=2 * pairs + 4, repeats=1,
        environment=Path(os.environ["TRAINMARK_DATA"]), settings=Settings(),
    )  # fmt: skip
    prepared = run_requests.prepare(request)
    tasks = [_in_short_epochs(task) for task in prepared.tasks]
    sampler = EverySecondEpoch(interval=INTERVAL_SECONDS / times)
    start = time.perf_counter()
    used = time.process_time()
    (record,) = execute(
        tasks, prepared.seen, Store(folder), SampledObserver(sampler), sampler=lambda: sampler
    )
    share = (time.process_time() - used) / (time.perf_counter() - start)
    warm = 4
    seconds = [epoch.seconds for epoch in record.epochs[warm:]]
    pairs_of_epochs = zip(seconds[::2], seconds[1::2], strict=True)
    ratios = [
        log(first / second) if is_watched(warm + 2 * number) else log(second / first)
        for number, (first, second) in enumerate(pairs_of_epochs)
    ]
    ratio = paired_difference(ratios).exponential()
    assert ratio.low is not None
    assert ratio.high is not None
    often = f", looking {times} times as often as usual" if times > 1 else ""
    print(
        f"watched / unwatched epoch{often}: {ratio.value:.4f} [{ratio.low:.4f}, "
        f"{ratio.high:.4f}], "
        f"n = {len(ratios)} pairs"
    )
    if times > 1:
        usual = ", ".join(f"{100 * (bound - 1) / times:.2f}" for bound in (ratio.low, ratio.high))
        print(
            f"so as often as usual it costs {100 * (ratio.value - 1) / times:.2f} % [{usual}] "
            "of an epoch"
        )
    print(
        f"the watching process itself used {100 * share:.2f} % of one core, looking in every "
        "second epoch"
    )
    return {
        "seconds": seconds,
        "ratio": ratio.value,
        "low": ratio.low,
        "high": ratio.high,
        "own_share": share,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--workload", action="append", choices=("mnist-mlp128", "mnist-mlp512"))
    parser.add_argument("--device", default="cpu", help="with --sampler")
    parser.add_argument("--sampler", type=int, metavar="PAIRS", help="the cost of sampling alone")
    parser.add_argument(
        "--times", type=int, default=1, help="with --sampler: look so many times as often"
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.sampler:
        with tempfile.TemporaryDirectory() as folder:
            found = sampling(options.sampler, options.times, options.device, Path(folder))
        if options.out:
            options.out.write_text(json.dumps(found, indent=1))
        return
    mnist = locate(
        "mnist",
        environment=Path(os.environ["TRAINMARK_DATA"]),
        cache=Path("unused"),
        download=False,
    )
    assert mnist.directory is not None
    results = {}
    for workload in options.workload or ("mnist-mlp128", "mnist-mlp512"):
        pairs = []
        for number in range(options.pairs):
            first_bare = number % 2 == 0
            before = bare(workload, mnist.directory) if first_bare else None
            ours = measured(workload)
            pairs.append((ours, before if before is not None else bare(workload, mnist.directory)))
            print(
                f"{workload} pair {number + 1}: trainmark {ours:.3f} s, bare {pairs[-1][1]:.3f} s",
                flush=True,
            )
        ratio = paired_difference([log(ours / theirs) for ours, theirs in pairs]).exponential()
        results[workload] = {
            "pairs": pairs,
            "ratio": ratio.value,
            "low": ratio.low,
            "high": ratio.high,
        }
        interval = "no interval" if ratio.low is None else f"[{ratio.low:.4f}, {ratio.high:.4f}]"
        print(
            f"{workload}: trainmark / bare = {ratio.value:.4f} {interval}, n = {len(pairs)} pairs",
            flush=True,
        )
    if options.out:
        options.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
