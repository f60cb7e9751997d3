"""Why a sum costs more than itself: a training step in parts, with a sum of its gradients in the middle and without.

    torchrun --standalone --nproc-per-node 2 bench/sums.py

Two ranks on a CPU, one thread each, the network of mnist-mlp512 with half a batch. Milliseconds, medians of five
stretches of 40 steps.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

STRETCHES, STEPS = 5, 40


def main() -> None:
    """Print the parts on rank 0."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    network = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.RMSprop(network.parameters(), lr=1e-4)
    x, y = torch.randn(64, 784), torch.randint(0, 10, (64,))
    sums = torch.zeros(sum(parameter.numel() for parameter in network.parameters()))

    def gradients(of: nn.Module = network) -> None:
        network.zero_grad(set_to_none=True)
        functional.cross_entropy(of(x), y).backward()

    def add_up() -> None:
        dist.all_reduce(sums)

    copies = nn.parallel.DistributedDataParallel(network)
    parts: dict[str, list[tuple[str, Callable[[], object]]]] = {
        "sums alone": [("sum", add_up)],
        "a step": [("forward and backward", gradients), ("update", optimizer.step)],
        "with a sum": [("forward and backward", gradients), ("sum", add_up), ("update", optimizer.step)],
        "with DDP": [("forward, backward and sum", lambda: gradients(copies)), ("update", optimizer.step)],
    }
    for name, pieces in parts.items():
        stretches = [_timed(pieces) for _ in range(STRETCHES + 1)][1:]
        medians = [statistics.median(stretch[place] for stretch in stretches) for place in range(len(pieces))]
        if dist.get_rank() == 0:
            told = ", ".join(f"{part} {1000 * seconds:.2f}" for (part, _), seconds in zip(pieces, medians, strict=True))
            print(f"{name}: {1000 * sum(medians):.2f} ms ({told})", flush=True)
    dist.destroy_process_group()


def _timed(pieces: list[tuple[str, Callable[[], object]]]) -> list[float]:
    """Seconds of each piece, a step."""
    seconds = [0.0] * len(pieces)
    dist.barrier()
    for _ in range(STEPS):
        for place, (_, piece) in enumerate(pieces):
            start = time.perf_counter()
            piece()
            seconds[place] += time.perf_counter() - start
    return [each / STEPS for each in seconds]


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
