"""From a batch to its loss and hits: the part of a step that a compiler gets as one function."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from trainmark.backends.torch import precision
from trainmark.workload.precision import Precision


class ForwardPass:
    """The network, the loss, and the count of correct predictions.

    Counting hits and copying the outputs to float32 belong here so that a compiler can fuse them
    with the loss: all three read the outputs, which for GPT-2 are 50,304 numbers per token.

    Args:
        forward: the network.
        loss: returns the mean loss of outputs and labels.
        dtype: type in which the loss is computed.
        precision: precision of the network.
        device: device of the network.
        counts_hits: whether to count hits.
    """

    def __init__(
        self,
        forward: Callable[[Tensor], Tensor],
        loss: Callable[[Tensor, Tensor], Tensor],
        dtype: torch.dtype,
        precision: Precision,
        device: torch.device,
        *,
        counts_hits: bool,
    ) -> None:
        self.forward = forward
        self.counts_hits = counts_hits
        self._loss = loss
        self._dtype = dtype
        self._precision = precision
        self._device = device

    def __call__(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the mean loss of a batch, and its hits if they are counted."""
        with precision.autocast(self._precision, self._device):
            outputs = self.forward(x)
        # Inside of autocast, log-probabilities would be rounded to 16 bits.
        loss = self._loss(outputs.to(self._dtype), y)
        return loss, hits(outputs, y) if self.counts_hits else None


def hits(outputs: Tensor, y: Tensor) -> Tensor:
    """Count correct predictions; of equal outputs, the first one is the prediction."""
    return (outputs.detach().argmax(dim=-1) == y).sum()
