"""An epoch in a given order, batch by batch, as a ``keras.utils.PyDataset``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class Batches(keras.utils.PyDataset):
    """Batches of the examples ``parts[i]``.

    Args:
        images: network input of the given examples; also told the number of the batch, so that distortions are
            those of the batch, however often and in whichever order it is asked for.
        labels: of all examples, ``[examples]``.
        first: number of the first batch in its epoch.
    """

    def __init__(
        self,
        images: Callable[[Indices, int], NDArray[Any]],
        labels: NDArray[np.int32],
        parts: list[Indices],
        first: int,
    ) -> None:
        super().__init__()
        self._images, self._labels, self._parts, self._first = images, labels, parts, first

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, index: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
        taken = self._parts[index]
        return self._images(taken, self._first + index), self._labels[taken]
