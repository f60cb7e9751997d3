"""The cost of the observer: an unchanged PyTorch script with steps of about 5 ms, with and without it.

One process trains the same network in short stretches, alternating whether the observer's callbacks are installed, so
that both see the same machine and memory. Time is CPU time of one thread, which other programs disturb less. Printed:
the ratio of the time per step with its interval, and the microseconds that the observer adds to a step.

    python bench/observer.py [--pairs 200] [--steps 20]
"""

from __future__ import annotations

import argparse
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
    spec = spec_from_file_location("trainmark_inject", INJECT / "__init__.py", submodule_search_locations=[str(INJECT)])
    assert spec is not None and spec.loader is not None
    module = sys.modules["trainmark_inject"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.start()
    finder: Any = sys.meta_path[0]
    return finder._observer


def batches(loader: Any) -> Iterator[Any]:
    """The batches of the loader, without end."""
    while True:
        yield from loader


def training(torch: Any, width: int) -> Callable[[int], float]:
    """A training as most scripts have it; returns a function that trains some steps and returns the seconds."""
    data = torch.utils.data.TensorDataset(torch.randn(64 * 50, 64), torch.randint(0, 10, (64 * 50,)))
    stream = batches(torch.utils.data.DataLoader(data, batch_size=64))
    layers = [torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(width, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train(steps: int) -> float:
        start = time.process_time()
        for _ in range(steps):
            x, y = next(stream)
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            loss.item()
        return (time.process_time() - start) / steps

    return train


def patched(torch: Any, observer: Any) -> Callable[[bool], None]:
    """Return a function that takes the observer's callbacks off PyTorch, and puts them back."""
    places = [
        (torch.Tensor, "backward"),
        (torch.Tensor, "item"),
        (torch.utils.data.DataLoader, "__iter__"),
        (sys.modules["torch.utils.data.dataloader"]._BaseDataLoaderIter, "__next__"),
    ]
    ours = [getattr(owner, name) for owner, name in places]
    hooks = sys.modules["torch.optim.optimizer"]
    tables = [hooks._global_optimizer_pre_hooks, hooks._global_optimizer_post_hooks]
    kept = [dict(table) for table in tables]
    root = observer.describe["torch"].__self__._root
    tables, kept = [*tables, root._forward_pre_hooks], [*kept, dict(root._forward_pre_hooks)]

    def switch(on: bool) -> None:
        for (owner, name), mine in zip(places, ours, strict=True):
            setattr(owner, name, mine if on else mine.__wrapped__)
        for table, filled in zip(tables, kept, strict=True):
            table.clear()
            table.update(filled if on else {})

    return switch


def main() -> None:
    """Print the cost for steps of about 5 ms, and for steps that compute next to nothing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        observer = observed(folder)
        import torch

        torch.set_num_threads(1)
        for width in (1024, 4):
            train = training(torch, width)
            train(30)
            observer._leader = lambda: None  # the new optimiser leads
            train(3)
            switch = patched(torch, observer)
            ratios, added, plain = [], [], []
            for pair in range(options.pairs):
                found = {}
                for on in (pair % 2 == 0, pair % 2 == 1):
                    switch(on)
                    train(5)  # Python adapts its code to patched classes
                    found[on] = train(options.steps)
                ratios.append(found[True] / found[False])
                added.append(found[True] - found[False])
                plain.append(found[False])
            switch(True)
            ratios.sort()
            half = round(0.98 * math.sqrt(len(ratios)))  # of the ranks of a median's 95 % interval
            low, high = (ratios[min(max(len(ratios) // 2 + by, 0), len(ratios) - 1)] for by in (-half, half))
            print(
                f"step of {statistics.median(plain) * 1e3:.2f} ms: {statistics.median(ratios):.4f}x "
                f"[{low:.4f}, {high:.4f}], {statistics.median(added) * 1e6:.1f} us a step more, "
                f"medians of {len(ratios)} pairs of {options.steps} steps"
            )
        assert observer.speaks, observer.injected


if __name__ == "__main__":
    main()
