"""For PyTorch: a loader that tells how long the training waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader

from trainmark import hook


class Waiting:
    """``Waiting(loader)`` in the place of a ``DataLoader``: the wait is told with each epoch; all else is its own."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        return iter(hook.batches(self._loader))

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
