"""The measured peak next to what the same library reaches by hand, in the same minute.

    python bench/peaks.py [--rounds 6] [--size 2048] [--out FILE.json]

For NumPy, PyTorch and JAX, interleaved: a few lines that anybody would write, `a @ b` of float32
for some seconds, the fastest one counted; and trainmark's own limits. Each is its own process. A
ratio above 1 means that trainmark found the device faster. Others on the machine only ever lower a
rate, so the highest of each is compared, too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

BY_HAND = """
import sys, time
import numpy as np
library, n = sys.argv[1], int(sys.argv[2])
a, b = (np.random.rand(n, n).astype(np.float32) for _ in range(2))
product = lambda: a @ b
if library == "torch":
    import torch
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    product = lambda: x @ y
if library == "jax":
    import jax
    x, y, matmul = jax.numpy.asarray(a), jax.numpy.asarray(b), jax.jit(jax.numpy.matmul)
    product = lambda: matmul(x, y).block_until_ready()
product()
best, end = float("inf"), time.perf_counter() + 3
while time.perf_counter() < end:
    start = time.perf_counter()
    product()
    best = min(best, time.perf_counter() - start)
print(2 * n**3 / best)
"""
OURS = """
import sys, time
from trainmark.backends import peaks, registry
from trainmark.backends.base import Options
backend = registry.load(sys.argv[1])
device = backend.capabilities().devices[0]
kernels = backend.peak_kernels(Options("fast", "cpu", "fp32", 0))
found = peaks.measure(kernels, device, time.perf_counter)
print(found.matmul_flops_per_second)
"""
LIBRARIES = ("numpy", "torch", "jax")


def rate(script: str, library: str, size: int) -> float:
    """Return the FLOP/s that ``script`` prints."""
    done = subprocess.run(
        [sys.executable, "-c", script, library, str(size)],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = {
        name: {"by_hand": [], "trainmark": []} for name in LIBRARIES
    }
    for number in range(options.rounds):
        for library in LIBRARIES:
            scripts = [("by_hand", BY_HAND), ("trainmark", OURS)]
            for side, script in scripts[:: -1 if number % 2 else 1]:
                found[library][side].append(rate(script, library, options.size))
    for library, rates in found.items():
        hand, ours = (
            ", ".join(f"{each / 1e9:.0f}" for each in rates[side])
            for side in ("by_hand", "trainmark")
        )
        ratios = [a / b for a, b in zip(rates["trainmark"], rates["by_hand"], strict=True)]
        print(
            f"{library}: by hand {hand} GFLOP/s, trainmark {ours} GFLOP/s; highest against "
            "highest "
            f"{max(rates['trainmark']) / max(rates['by_hand']):.3f}, round by round "
            f"{statistics.median(ratios):.3f} "
            f"({min(ratios):.3f} to {max(ratios):.3f}, n = {len(ratios)})"
        )
    if options.out:
        options.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
