"""The forms of cross-entropy in the published scripts. All are reported as means over the batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trainmark.workload.decode import Bounded, Share, require


@dataclass(frozen=True)
class NegativeLogLikelihood:
    """``-log p[label]`` of a network that ends in log-softmax."""

    kind: Literal["nll"] = "nll"


@dataclass(frozen=True)
class SoftmaxCrossEntropy(Bounded):
    """Softmax and logarithm fused: the stable form, on logits.

    Args:
        smoothing: label smoothing over all classes: ``(1 - s)·onehot + s/classes``.
        reduction: what is differentiated. The reported loss is always the mean over examples (and
            tokens).
    """

    smoothing: Share = 0.0
    reduction: Literal["mean", "sum"] = "mean"
    kind: Literal["softmax-cross-entropy"] = "softmax-cross-entropy"


@dataclass(frozen=True)
class TwoStageCrossEntropy:
    """Softmax (shifted by its maximum), then its logarithm, with separate gradients; on logits.

    No epsilon and no clamp, so a probability that underflows makes the loss infinite or its
    gradient NaN.
    """

    kind: Literal["softmax-then-log"] = "softmax-then-log"


@dataclass(frozen=True)
class ClippedCrossEntropy:
    """Softmax, clipped to ``[epsilon, 1 - epsilon]``, then the logarithm; on logits.

    An example outside the clip range has no gradient.
    """

    epsilon: float
    kind: Literal["clipped-softmax-cross-entropy"] = "clipped-softmax-cross-entropy"

    def __post_init__(self) -> None:
        require(0 < self.epsilon < 0.5, "epsilon", "a number between 0 and 0.5", self.epsilon)

    @property
    def log_bounds(self) -> tuple[float, float]:
        """Logarithms of both bounds.

        Clipping log p to them equals clipping p, in value and gradient.
        """
        return math.log(self.epsilon), math.log1p(-self.epsilon)


def probabilities(outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert outputs ``[examples, classes]`` to probabilities.

    Outputs are logits, or log-probabilities, whose exponentials already add up to 1.
    """
    exponentials = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


def sums(loss: object) -> bool:
    """Whether the gradient is that of the sum over the batch."""
    return isinstance(loss, SoftmaxCrossEntropy) and loss.reduction == "sum"


Loss = NegativeLogLikelihood | SoftmaxCrossEntropy | TwoStageCrossEntropy | ClippedCrossEntropy
