"""Are the sampler's values right?

    python bench/sampler.py [--out FILE.json]

It samples a training held to one thread, and a process with four busy children on the cores of this
machine, and prints their mean CPU %, and the largest gap between two samples. It needs
TRAINMARK_DATA with MNIST, and a quiet machine. `overhead.py` measures the cost of sampling.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from trainmark.measure.sampler import Sampler
from trainmark.record.store import load

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


def one_thread(folder: Path) -> dict[str, Any]:
    """Return a training that may use one core."""
    subprocess.run(
        [
            sys.executable,
            "-m",
            "trainmark",
            "run",
            "mnist-mlp512",
            "--backend",
            "torch",
            "--style",
            "fast",
            "--device",
            "cpu",
            "--threads",
            "1",
            "--epochs",
            "8",
            "--repeats",
            "1",
            "--out",
            folder,
        ],
        check=True,
        capture_output=True,
    )
    (record,) = load([folder])
    samples = record.samples
    assert samples is not None
    assert samples.tree_cpu_percent is not None
    steady = record.epochs[1:]
    start = steady[0].start_seconds
    end = steady[-1].start_seconds + steady[-1].seconds
    inside = [
        percent
        for moment, percent in zip(samples.t, samples.tree_cpu_percent, strict=True)
        if start + samples.interval_seconds < moment < end and percent is not None
    ]
    return _told("a training held to one thread", samples.t, inside, samples.interval_seconds)


def four_busy(seconds: float = 20.0) -> dict[str, Any]:
    """Start four busy processes under one."""
    process = subprocess.Popen([sys.executable, "-c", FOUR_BUSY.format(seconds=seconds)])
    sampler = Sampler()
    origin = time.perf_counter()
    sampler.watch(process.pid)
    while process.poll() is None:
        sampler.sample()
        time.sleep(0.1)
    samples = sampler.take(origin)
    assert samples is not None
    assert samples.tree_cpu_percent is not None
    inside = [percent for percent in samples.tree_cpu_percent[5:-5] if percent is not None]
    return _told("four busy processes", samples.t, inside, samples.interval_seconds)


def _told(name: str, times: list[float], percents: list[float], interval: float) -> dict[str, Any]:
    gap = max(later - earlier for earlier, later in pairwise(times))
    mean = statistics.fmean(percents)
    print(
        f"{name}: {mean:.1f} % CPU on average, {len(percents)} samples, largest gap "
        f"{gap / interval:.2f} intervals"
    )
    return {"cpu_percent": mean, "samples": len(percents), "largest_gap_intervals": gap / interval}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {
            "one_thread": one_thread(Path(folder, "one-thread")),
            "four_busy": four_busy(),
        }
    if options.out:
        options.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
