"""The effect of each choice in PyTorch's style `fast`: the same step with one change.

    python bench/torch_choices.py [--workload NAME] [--threads N] [--rounds N]

All variants live in one process and are timed in turn, forwards and then backwards, on random data.
It prints the median over rounds of the time of the first variant divided by the variant's: above 1
is faster.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from trainmark.backends.torch import losses, network, optimizers
from trainmark.workload import catalog
from trainmark.workload.model import initial_weights, lay_out
from trainmark.workload.optimizers import weight_decay_of

STRETCH_SECONDS = 0.4
BATCHES = 20
FULL_BATCH = 5_000
"""Batch size, in examples, that replaces the whole training set where a step takes all of it."""


def variant(
    name: str, *, quick: bool, channels_last: bool, compiled: bool
) -> Callable[[int], None]:
    """A function that trains this many steps."""
    workload = catalog.find(name)
    model = lay_out(workload)
    height, width, channels = model.input_shape
    size = FULL_BATCH if workload.batches.size == "full" else workload.batches.size
    trained = network.build(model, model.layers)
    network.write(trained, model, initial_weights(model, seed=1))
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    trained.to(memory_format=memory_format)
    images = torch.rand(size * BATCHES, channels, height, width).contiguous(
        memory_format=memory_format
    )
    labels = torch.randint(10, (len(images),))
    loss_of = losses.build(workload.loss)
    weights = network.parameters(trained, model)
    decays = {
        each: weight_decay_of(workload.optimizer, key, each.ndim) for key, each in weights.items()
    }
    forward = torch.compile(trained, fullgraph=True) if compiled else trained
    optimizer = optimizers.build(
        workload.optimizer, trained, decays=decays, quick=quick, capturable=False
    )

    def train(steps: int) -> None:
        order = torch.randperm(len(images))
        for step in range(steps):
            taken = order[(step % BATCHES) * size :][:size]
            optimizer.zero_grad(set_to_none=True)
            loss_of(forward(images[taken]), labels[taken]).backward()
            optimizer.step()

    return train


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--workload",
        action="append",
        choices=catalog.names(),
        help="may be repeated; all if left out",
    )
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    print(
        f"PyTorch {torch.__version__}, {options.threads} threads, {options.rounds} rounds",
        flush=True,
    )
    for name in options.workload or [name for name in catalog.names() if ":" not in name]:
        variants = {
            "default optimiser, contiguous": variant(
                name, quick=False, channels_last=False, compiled=False
            ),
            "fused or foreach, contiguous": variant(
                name, quick=True, channels_last=False, compiled=False
            ),
            "fused or foreach, channels last": variant(
                name, quick=True, channels_last=True, compiled=False
            ),
            "fused or foreach, compiled": variant(
                name, quick=True, channels_last=False, compiled=True
            ),
            "fused or foreach, channels last, compiled": variant(
                name, quick=True, channels_last=True, compiled=True
            ),
        }
        seconds: dict[str, list[float]] = {label: [] for label in variants}
        for train in variants.values():
            train(3)
        start = time.perf_counter()
        variants["default optimiser, contiguous"](3)
        steps = max(2, int(3 * STRETCH_SECONDS / (time.perf_counter() - start)))
        for number in range(options.rounds):
            for label in list(variants)[:: -1 if number % 2 else 1]:
                start = time.perf_counter()
                variants[label](steps)
                seconds[label].append((time.perf_counter() - start) / steps)
        print(f"\n{name}, {steps} steps a stretch")
        for label, measured in seconds.items():
            ratios = [a / b for a, b in zip(next(iter(seconds.values())), measured, strict=True)]
            print(
                f"  {label:<42} {statistics.median(measured) * 1e3:8.2f} ms a step   "
                f"{statistics.median(ratios):.2f}x "
                f"(rounds: {min(ratios):.2f} to {max(ratios):.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
