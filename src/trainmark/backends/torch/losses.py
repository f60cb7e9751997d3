"""The losses on PyTorch, as means over the batch."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from trainmark.workload.losses import ClippedCrossEntropy, Loss, NegativeLogLikelihood, SoftmaxCrossEntropy


def build(loss: Loss | None) -> Callable[[Tensor, Tensor], Tensor]:
    """A function of outputs ``[batch, classes]`` and labels ``[batch]`` that returns the mean loss."""
    if loss is None:
        return lambda outputs, _: outputs.mean()
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
        return -_true(torch.softmax(logits, dim=1), labels).log().mean()

    return two_stage


def build_with_gradient(loss: Loss | None) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """A function of outputs ``[classes, batch]`` and labels ``[batch]`` to the mean loss and its gradient, no autograd.

    The classes are in rows, so that all examples are worked on side by side: on a CPU a softmax over ten neighbouring
    values is ten times slower than one over ten rows.
    """
    if loss is None:
        return lambda outputs, _: (outputs.mean(), torch.full_like(outputs, 1 / outputs.numel()))
    if isinstance(loss, NegativeLogLikelihood):

        def picked(outputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
            true = labels.unsqueeze(0)
            gradient = torch.zeros_like(outputs).scatter_(0, true, -1 / len(labels))
            return -outputs.gather(0, true).mean(), gradient

        return picked
    if isinstance(loss, (SoftmaxCrossEntropy, ClippedCrossEntropy)):
        epsilon = loss.epsilon if isinstance(loss, ClippedCrossEntropy) else 0.0

        def cross_entropy(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
            true = labels.unsqueeze(0)
            log_p = torch.log_softmax(logits, dim=0)
            log_true = log_p.gather(0, true)
            gradient = log_p.exp_().scatter_add_(0, true, torch.full_like(log_true, -1.0))
            if epsilon:
                unclipped = log_true.clamp(math.log(epsilon), math.log1p(-epsilon))
                gradient *= unclipped == log_true
                log_true = unclipped
            return -log_true.mean(), gradient.div_(len(labels))

        return cross_entropy

    def two_stage(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        true = labels.unsqueeze(0)
        p = torch.softmax(logits, dim=0)
        p_true = p.gather(0, true)
        # Kept in two stages, for the sake of a p so small that 1/p overflows: the gradient is then not a number.
        inner = p_true * (-1 / p_true)
        return -p_true.log().mean(), (-p * inner).scatter_add_(0, true, inner).div_(len(labels))

    return two_stage


def _true(values: Tensor, labels: Tensor) -> Tensor:
    return values.gather(1, labels.unsqueeze(1)).squeeze(1)
