"""Numbers that are too small for full precision, with which a CPU computes slowly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

_FIRST_LOOK = 4
"""Step of the first check; each further one comes after twice as many."""


class Denormals:
    """How many numbers of a training on a CPU are denormal."""

    def __init__(self) -> None:
        self._steps = 0
        self._next = _FIRST_LOOK

    def is_due(self) -> bool:
        """Count a step; return whether a check is due."""
        self._steps += 1
        if self._steps < self._next:
            return False
        self._next *= 2
        return True

    def share(self, optimizer: Any) -> float:
        """Return the share of denormal numbers among weights, gradients and the state."""
        total = 0
        denormal = 0
        for tensor in _tensors(optimizer):
            sizes = tensor.detach().abs()
            total += sizes.numel()
            denormal += int(((sizes > 0) & (sizes < torch.finfo(sizes.dtype).tiny)).sum())
        return denormal / max(total, 1)


def _tensors(optimizer: Any) -> Iterator[Any]:
    """Yield an optimiser's weights, gradients and state that are on the CPU."""
    for group in optimizer.param_groups:
        for weight in group["params"]:
            every = [weight, weight.grad, *optimizer.state.get(weight, {}).values()]
            for each in every:
                if torch.is_tensor(each) and each.device.type == "cpu" and _is_full(each):
                    yield each


def _is_full(tensor: Any) -> bool:
    return tensor.dtype in (torch.float32, torch.float64) and not tensor.is_sparse
