"""Batches of chosen examples, for ``fit`` and ``evaluate``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
"""Positions of examples in a split."""
Batch = tuple[NDArray[Any], NDArray[Any]]
"""Network input and labels."""


class OrderedBatches(keras.utils.PyDataset):
    """A dataset with the examples ``parts[i]`` as batch ``i``.

    Args:
        batch: makes a batch of examples; it also gets the number of the batch, so that distortions
            depend only on the batch, in whatever order and however often it is requested.
        first: number of the first batch in its epoch.
    """

    def __init__(
        self, batch: Callable[[Indices, int], Batch], parts: list[Indices], first: int = 0
    ) -> None:
        super().__init__()
        self._batch = batch
        self._parts = parts
        self._first = first

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, index: int) -> Batch:
        return self._batch(self._parts[index], self._first + index)
