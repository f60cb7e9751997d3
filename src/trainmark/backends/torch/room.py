"""Memory that is used again in every step, since the pages of a fresh large block cost as much as filling it."""

from __future__ import annotations

import torch
from torch import Tensor


class Room:
    """Place for one result, which lives until the next one is asked for."""

    def __init__(self) -> None:
        self._tensor = torch.empty(0)

    def of(self, like: Tensor, shape: tuple[int, ...] | torch.Size) -> Tensor:
        """An uninitialised, contiguous tensor of ``shape`` and of the type of ``like``."""
        if self._tensor.shape != shape or self._tensor.dtype != like.dtype:
            self._tensor = like.new_empty(shape)
        return self._tensor
