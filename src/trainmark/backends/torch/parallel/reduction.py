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

    def stretches(self, size: int, turns: int) -> tuple[Callable[[], object], Callable[[], object]]:
        """Products and an update, and an all-reduce behind them, of one array: DDP packs them."""
        values = torch.zeros(max(1, size // 4), dtype=torch.float32, device=self._ranks.device)

        def without() -> None:
            for _ in range(turns):
                self._compute()

        def summed() -> None:
            for _ in range(turns):
                self._compute()
                dist.all_reduce(values)
                self._wait()

        return without, summed

    def _compute(self) -> None:
        for _ in range(_PRODUCTS):
            self._batch @ self._weights
        self._weights.mul_(1.0)
        self._wait()

    def _wait(self) -> None:
        if self._ranks.device.type == "cuda":
            torch.cuda.synchronize(self._ranks.device)

    def meet(self) -> None:
        """A barrier."""
        self._ranks.meet()
