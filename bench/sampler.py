"""Is what the sampler says true, and what does it cost?

    python bench/sampler.py [--pairs 60] [--out FILE.json]

Cost: one training of mnist-mlp512 with torch `fast`, watched in every second epoch; the ratio of each watched epoch to
the unwatched one before it, and the CPU seconds that the watching process itself spent. Truth: a training held to one
thread, and a process with four busy children on the cores of this machine: what their CPU % averages, and the largest
gap between two samples. Needs TRAINMARK_DATA with MNIST, and a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Any

from trainmark.analysis.statistics import paired_mean
from trainmark.cli.options import cache_dir
from trainmark.execute import request as requests
from trainmark.execute.plan import Settings, Task
from trainmark.execute.scheduler import execute
from trainmark.execute.wire import Message
from trainmark.measure.sampler import Row, Sampler
from trainmark.record.record import Record
from trainmark.record.store import Store, load

FOUR_BUSY = """
import multiprocessing, time
def burn(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
if __name__ == "__main__":
    children = [multiprocessing.Process(target=burn, args=({seconds},)) for _ in range(4)]
    for child in children: child.start()
    for child in children: child.join()
"""


class EverySecondEpoch(Sampler):
    """Looks in odd epochs only."""

    epoch = 0

    def look(self) -> None:
        if self.epoch % 2:
            super().look()


class Watcher:
    """Tells the sampler which epoch has begun."""

    def __init__(self, sampler: EverySecondEpoch) -> None:
        self._sampler = sampler

    def heard(self, message: Message) -> None:
        if message["event"] == "epoch":
            self._sampler.epoch = message["index"] + 1

    def task_started(self, task: Task) -> None: ...
    def run_started(self, run: Any, replayed: bool) -> None: ...
    def counted(self, steps: int) -> None: ...
    def sampled(self, rows: Sequence[Row]) -> None: ...
    def recorded(self, record: Record) -> None: ...
    def task_ended(self, task: Task) -> None: ...


def cost(pairs: int, folder: Path) -> dict[str, Any]:
    """What it costs to watch."""
    request = requests.Request(
        ("mnist-mlp512",), ("torch",), ("fast",), ("cpu",), epochs=2 * pairs + 2, repeats=1,
        environment=Path(os.environ["TRAINMARK_DATA"]), settings=Settings(),
    )  # fmt: skip
    prepared = requests.prepare(request, cache_dir())
    sampler = EverySecondEpoch()
    start, used = time.perf_counter(), time.process_time()
    (record,) = execute(prepared.tasks, prepared.seen, Store(folder), Watcher(sampler), sampler=sampler)
    share = (time.process_time() - used) / (time.perf_counter() - start)
    seconds = [epoch.seconds for epoch in record.epochs[2:]]  # unwatched, watched, unwatched, ...
    ratios = [log(watched / before) for before, watched in zip(seconds[::2], seconds[1::2], strict=True)]
    ratio = paired_mean(ratios).exponential()
    print(f"watched / unwatched epoch: {ratio.value:.4f} [{ratio.low:.4f}, {ratio.high:.4f}], n = {len(ratios)} pairs")
    print(f"the watching process itself used {100 * share:.2f} % of one core, looking in every second epoch")
    return {"seconds": seconds, "ratio": ratio.value, "low": ratio.low, "high": ratio.high, "own_share": share}


def one_thread(folder: Path) -> dict[str, Any]:
    """A training that may use one core."""
    subprocess.run(
        [sys.executable, "-m", "trainmark", "run", "mnist-mlp512", "--backend", "torch", "--style", "fast",
         "--device", "cpu", "--threads", "1", "--epochs", "8", "--repeats", "1", "--out", folder],
        check=True, capture_output=True,
    )  # fmt: skip
    (record,) = load([folder])
    samples = record.samples
    assert samples is not None
    assert samples.tree_cpu_percent is not None
    steady = record.epochs[1:]
    start, end = steady[0].start_seconds, steady[-1].start_seconds + steady[-1].seconds
    inside = [
        percent
        for moment, percent in zip(samples.t, samples.tree_cpu_percent, strict=True)
        if start + samples.interval_seconds < moment < end and percent is not None
    ]
    return _told("a training held to one thread", samples.t, inside, samples.interval_seconds)


def four_busy(seconds: float = 20.0) -> dict[str, Any]:
    """Four busy processes under one."""
    process = subprocess.Popen([sys.executable, "-c", FOUR_BUSY.format(seconds=seconds)])
    sampler = Sampler()
    origin = time.perf_counter()
    sampler.watch(process.pid)
    while process.poll() is None:
        sampler.look()
        time.sleep(0.1)
    samples = sampler.take(origin)
    assert samples is not None
    assert samples.tree_cpu_percent is not None
    inside = [percent for percent in samples.tree_cpu_percent[5:-5] if percent is not None]
    return _told("four busy processes", samples.t, inside, samples.interval_seconds)


def _told(name: str, times: list[float], percents: list[float], interval: float) -> dict[str, Any]:
    gap = max(later - earlier for earlier, later in pairwise(times))
    mean = statistics.fmean(percents)
    print(f"{name}: {mean:.1f} % CPU on average, {len(percents)} samples, largest gap {gap / interval:.2f} intervals")
    return {"cpu_percent": mean, "samples": len(percents), "largest_gap_intervals": gap / interval}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {
            "cost": cost(options.pairs, Path(folder, "cost")),
            "one_thread": one_thread(Path(folder, "one-thread")),
            "four_busy": four_busy(),
        }
    if options.out:
        options.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
