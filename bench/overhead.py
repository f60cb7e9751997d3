"""What trainmark costs: a steady epoch under `trainmark run` against the same loop in a bare script.

    python bench/overhead.py [--pairs 15] [--workload mnist-mlp128 --workload mnist-mlp512] [--out FILE.json]

Pairs of processes alternate (A B, B A, ...), so that a drift of the machine meets both. Each process trains two epochs;
the first is warm-up. A ratio above 1 means trainmark is slower. Needs TRAINMARK_DATA with MNIST, and a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from math import log
from pathlib import Path

from trainmark.analysis.statistics import paired_mean
from trainmark.data.locate import locate
from trainmark.record.store import load

EPOCHS = 2
BARE = Path(__file__).with_name("bare_torch.py")


def bare(workload: str, mnist: Path) -> float:
    """Seconds of a steady epoch of the bare script."""
    answer = subprocess.run(
        [sys.executable, BARE, workload, mnist, str(EPOCHS)], check=True, capture_output=True, text=True
    )
    return float(json.loads(answer.stdout)["seconds"][-1])


def measured(workload: str) -> float:
    """Seconds of a steady epoch under trainmark."""
    with tempfile.TemporaryDirectory() as out:
        arguments = ["--backend", "torch", "--style", "idiomatic", "--device", "cpu", "--epochs", str(EPOCHS)]
        subprocess.run(
            [sys.executable, "-m", "trainmark", "run", workload, *arguments, "--repeats", "1", "--out", out],
            check=True,
            capture_output=True,
        )
        (record,) = load([Path(out)])
        return record.epochs[-1].seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--workload", action="append", choices=("mnist-mlp128", "mnist-mlp512"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    mnist = locate("mnist", environment=Path(os.environ["TRAINMARK_DATA"]), cache=Path("unused"), download=False)
    results = {}
    for workload in options.workload or ("mnist-mlp128", "mnist-mlp512"):
        pairs = []
        for number in range(options.pairs):
            first_bare = number % 2 == 0
            before = bare(workload, mnist.directory) if first_bare else None
            ours = measured(workload)
            pairs.append((ours, before if before is not None else bare(workload, mnist.directory)))
            print(f"{workload} pair {number + 1}: trainmark {ours:.3f} s, bare {pairs[-1][1]:.3f} s", flush=True)
        ratio = paired_mean([log(ours / theirs) for ours, theirs in pairs]).exponential()
        results[workload] = {"pairs": pairs, "ratio": ratio.value, "low": ratio.low, "high": ratio.high}
        interval = "no interval" if ratio.low is None else f"[{ratio.low:.4f}, {ratio.high:.4f}]"
        print(f"{workload}: trainmark / bare = {ratio.value:.4f} {interval}, n = {len(pairs)} pairs", flush=True)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
