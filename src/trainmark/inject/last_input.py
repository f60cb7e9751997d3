"""Whether a network computes the same examples as the one before it."""

from __future__ import annotations

import weakref
from typing import Any


class LastInput:
    """The tensor of the last forward pass.

    An agent's actor and its critic compute one after the other from the same tensor, and so do two
    passes with dropout. Another tensor may have the same examples or others.
    """

    def __init__(self) -> None:
        self._tensor: weakref.ref[Any] | None = None
        self._version = 0

    def is_this_too(self, tensor: Any) -> bool:
        """Return whether a tensor is the one of the last call, and unchanged; keep it for the next.

        Args:
            tensor: PyTorch's tensor; None if there is none.
        """
        if tensor is None or tensor.is_inference():  # the latter doesn't count its changes
            self._tensor = None
            return False
        version = tensor._version
        is_same = self._tensor is not None and self._tensor() is tensor
        is_unchanged = version == self._version
        self._tensor = weakref.ref(tensor)
        self._version = version
        return is_same and is_unchanged
