"""Sums over all ranks, as DDP asks for them."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

from trainmark.backends.base import Options
from trainmark.backends.torch.parallel.ranks import Ranks

_SIDE, _ROWS, _PRODUCTS = 1024, 64, 2
"""What stands for a step: products with a matrix of 4 MiB, which is then gone over once more, as an optimiser does."""


class TorchReduction:
    """See :class:`~trainmark.backends.collectives.Reduction`."""

    def __init__(self, options: Options) -> None:
        assert options.layout is not None
        if options.threads is not None:
            torch.set_num_threads(options.threads)
        self._ranks = Ranks(options.layout, options.device)
        self._weights = torch.ones(_SIDE, _SIDE, device=self._ranks.device)
        self._batch = torch.ones(_ROWS, _SIDE, device=self._ranks.device)

    def sums(self, size: int) -> Callable[[], object]:
        """An all-reduce of ``size`` bytes."""
        values = torch.zeros(max(1, size // 4), dtype=torch.float32, device=self._ranks.device)

        def work() -> None:
            dist.all_reduce(values)
            if values.device.type == "cuda":
                torch.cuda.synchronize(values.device)

        return work

    def compute(self) -> None:
        """Products and an update."""
        for _ in range(_PRODUCTS):
            self._batch @ self._weights
        self._weights.mul_(1.0)
        if self._weights.device.type == "cuda":
            torch.cuda.synchronize(self._weights.device)

    def meet(self) -> None:
        """A barrier."""
        self._ranks.meet()
