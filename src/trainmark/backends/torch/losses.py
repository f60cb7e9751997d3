"""The losses on PyTorch, as means over the batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor
from torch.nn import functional

from trainmark.errors import assert_never
from trainmark.workload import losses as spec


def build(loss: spec.Loss | None, *, sequences: bool = False) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function of outputs and labels that returns the mean loss.

    Outputs are ``[batch, classes]`` and labels ``[batch]``.

    Args:
        sequences: whether there is one more axis, ``[batch, length, classes]`` and ``[batch,
            length]``.
    """
    if sequences:
        of_rows = build(loss)

        def of_sequences(outputs: Tensor, labels: Tensor) -> Tensor:
            return of_rows(outputs.flatten(0, 1), labels.flatten())

        return of_sequences
    match loss:
        case None:
            return _mean
        case spec.NegativeLogLikelihood():
            return functional.nll_loss
        case spec.SoftmaxCrossEntropy():
            return partial(functional.cross_entropy, label_smoothing=loss.smoothing)
        case spec.ClippedCrossEntropy():
            bounds = loss.log_bounds

            def clipped(logits: Tensor, labels: Tensor) -> Tensor:
                return -_true(logits.log_softmax(dim=1), labels).clamp(*bounds).mean()

            return clipped
        case spec.TwoStageCrossEntropy():
            return _two_stage_cross_entropy
        case _:
            assert_never(loss)


def _mean(outputs: Tensor, _: Tensor) -> Tensor:
    return outputs.mean()


def _two_stage_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return -_true(logits.softmax(dim=1), labels).log().mean()


def _true(values: Tensor, labels: Tensor) -> Tensor:
    return values.gather(1, labels.unsqueeze(1)).squeeze(1)
