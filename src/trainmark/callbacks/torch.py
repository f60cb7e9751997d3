"""For PyTorch: a loader that tells how long the training waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader

from trainmark import hook


def synchronize() -> None:
    """Wait for the GPU, so that the clock is not read before it has finished."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


class Waiting:
    """``Waiting(loader)`` in the place of a ``DataLoader``: the wait is told with each epoch; all else is its own.

    It is no ``DataLoader`` itself: who replaces samplers, as Lightning does on several GPUs, must be given the loader.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        return iter(hook.batches(self._loader))

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        if name == "_loader":  # not there yet, while it is unpickled
            raise AttributeError(name)
        return getattr(self._loader, name)
