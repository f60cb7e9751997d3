"""The losses on PyTorch, as means over the batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor
from torch.nn import functional

from trainmark.errors import assert_never
from trainmark.workload import losses as spec


def build(loss: spec.Loss | None, *, sequences: bool = False) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function of outputs ``[batch, classes]`` and labels ``[batch]`` that returns the
    mean loss.

    Args:
        sequences: whether there is one more axis, ``[batch, length, classes]`` and ``[batch,
            length]``.
    """
    if sequences:
        of_rows = build(loss)
        return lambda outputs, labels: of_rows(outputs.flatten(0, 1), labels.flatten())
    if loss is None:
        return lambda outputs, _: outputs.mean()
    match loss:
        case spec.NegativeLogLikelihood():
            return functional.nll_loss
        case spec.SoftmaxCrossEntropy():
            return partial(functional.cross_entropy, label_smoothing=loss.smoothing)
        case spec.ClippedCrossEntropy():
            bounds = loss.log_bounds
            return lambda logits, labels: (
                -_true(logits.log_softmax(dim=1), labels).clamp(*bounds).mean()
            )
        case spec.TwoStageCrossEntropy():
            return lambda logits, labels: -_true(logits.softmax(dim=1), labels).log().mean()
        case _:
            assert_never(loss)


def _true(values: Tensor, labels: Tensor) -> Tensor:
    return values.gather(1, labels.unsqueeze(1)).squeeze(1)
