"""For PyTorch: a loader that reports how long the training waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader

from trainmark import hook


def synchronize() -> None:
    """Wait for the GPU to finish, so that the clock is read after it."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


class Waiting:
    """Wrap a ``DataLoader`` and report with each epoch how long the training waited for it.

    All other attributes are the loader's. This is not itself a ``DataLoader``: pass the loader to code that replaces
    samplers, as Lightning does on several GPUs.

    Args:
        loader: the loader of the training examples.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        return iter(hook.batches(self._loader))

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        if name == "_loader":  # not set yet while this is unpickled
            raise AttributeError(name)
        return getattr(self._loader, name)
