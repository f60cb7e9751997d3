"""The losses on PyTorch, as means over the batch."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from trainmark.workload.losses import ClippedCrossEntropy, Loss, NegativeLogLikelihood, SoftmaxCrossEntropy


def build(loss: Loss) -> Callable[[Tensor, Tensor], Tensor]:
    """A function of outputs ``[batch, classes]`` and labels ``[batch]`` that returns the mean loss."""
    if isinstance(loss, NegativeLogLikelihood):
        return functional.nll_loss
    if isinstance(loss, SoftmaxCrossEntropy):
        return functional.cross_entropy
    if isinstance(loss, ClippedCrossEntropy):
        low, high = math.log(loss.epsilon), math.log1p(-loss.epsilon)

        def clipped(logits: Tensor, labels: Tensor) -> Tensor:
            # Clipping log p is clipping p: the same value, and no gradient outside the range either.
            return -_true(functional.log_softmax(logits, dim=1), labels).clamp(low, high).mean()

        return clipped

    def two_stage(logits: Tensor, labels: Tensor) -> Tensor:
        return -_true(torch.log(torch.softmax(logits, dim=1)), labels).mean()

    return two_stage


def _true(values: Tensor, labels: Tensor) -> Tensor:
    return values.gather(1, labels.unsqueeze(1)).squeeze(1)
