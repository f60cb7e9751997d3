"""The cost of the observer: an unchanged PyTorch script with steps of about 5 ms, with and without
it.

One process trains the same network in short stretches, alternating whether the observer's callbacks
are called, so that both see the same machine and memory. Time is CPU time of one thread, which
other programs disturb less. It prints the ratio of the time per step with its interval, and the
microseconds that the observer adds to a step.

    python bench/observer.py [--pairs 200] [--steps 20] [--width 1024]
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

INJECT = Path(__file__).parents[1] / "src" / "trainmark" / "inject"


def observed(folder: str) -> Any:
    """Start the observer in this process, as ``trainmark measure`` does."""
    pipe = Path(folder) / "reports"
    os.mkfifo(pipe)
    subprocess.Popen(["cat", str(pipe)], stdout=subprocess.DEVNULL)  # ends with this process
    os.environ |= {"TRAINMARK_HOOK": str(pipe), "TRAINMARK_OBSERVER": folder}
    spec = spec_from_file_location(
        "trainmark_inject", INJECT / "__init__.py", submodule_search_locations=[str(INJECT)]
    )
    assert spec is not None and spec.loader is not None
    module = sys.modules["trainmark_inject"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.start()
    finder: Any = sys.meta_path[0]
    return finder._observer


def batches(loader: Any, iterate: Any, advance: Any) -> Iterator[Any]:
    """The batches of the loader, without end."""
    while True:
        iterator = iterate(loader)
        with contextlib.suppress(StopIteration):
            while True:
                yield advance(iterator)


def training(torch: Any, width: int) -> Callable[[int, bool], float]:
    """Return a function that trains some steps as most scripts do, and returns the seconds of one.

    Without the observer it calls PyTorch's own functions and has no hooks. Nothing is patched anew
    between stretches, and each way has its own loop, since Python would have to adapt its code each
    time.
    """
    data = torch.utils.data.TensorDataset(
        torch.randn(64 * 50, 64), torch.randint(0, 10, (64 * 50,))
    )
    loader = torch.utils.data.DataLoader(data, batch_size=64)
    ours = (
        type(loader).__iter__,
        sys.modules["torch.utils.data.dataloader"]._BaseDataLoaderIter.__next__,
    )
    streams = {
        True: batches(loader, *ours),
        False: batches(loader, *(each.__wrapped__ for each in ours)),
    }
    backward = torch.Tensor.backward.__wrapped__
    item = torch.Tensor.item.__wrapped__
    layers = [
        torch.nn.Linear(64, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, width),
        torch.nn.ReLU(),
    ]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(width, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    hooks = sys.modules["torch.optim.optimizer"]
    tables = [
        hooks._global_optimizer_pre_hooks,
        hooks._global_optimizer_post_hooks,
        model._forward_pre_hooks,
    ]

    def observed_steps(steps: int) -> None:
        stream = streams[True]
        for _ in range(steps):
            x, y = next(stream)
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            loss.item()

    def plain_steps(steps: int) -> None:
        stream = streams[False]
        for _ in range(steps):
            x, y = next(stream)
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            backward(loss)
            optimizer.step()
            item(loss)

    def train(steps: int, observes: bool) -> float:
        kept = [dict(table) for table in tables]
        if not observes:
            for table in tables:
                table.clear()
        take = observed_steps if observes else plain_steps
        take(5)
        start = time.process_time()
        take(steps)
        seconds = (time.process_time() - start) / steps
        for table, filled in zip(tables, kept, strict=True):
            table.update(filled)
        return seconds

    return train


def main() -> None:
    """Print the cost of the observer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument(
        "--width", type=int, default=1024, help="of the network: 1024 takes about 5 ms a step"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        observer = observed(folder)
        import torch

        torch.set_num_threads(1)
        train = training(torch, options.width)
        train(30, True)
        ratios = []
        added = []
        plain = []
        for pair in range(options.pairs):
            found = {on: train(options.steps, on) for on in (pair % 2 == 0, pair % 2 == 1)}
            ratios.append(found[True] / found[False])
            added.append(found[True] - found[False])
            plain.append(found[False])
        ratios.sort()
        half = round(0.98 * math.sqrt(len(ratios)))  # of the ranks of a median's 95 % interval
        low, high = (
            ratios[min(max(len(ratios) // 2 + by, 0), len(ratios) - 1)] for by in (-half, half)
        )
        print(
            f"step of {statistics.median(plain) * 1e3:.2f} ms: {statistics.median(ratios):.4f}x "
            f"[{low:.4f}, {high:.4f}], {statistics.median(added) * 1e6:.1f} us a step more, "
            f"medians of {len(ratios)} pairs of {options.steps} steps"
        )
        assert observer.speaks, observer.injected


if __name__ == "__main__":
    main()
