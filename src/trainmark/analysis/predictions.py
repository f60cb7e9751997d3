"""Predictions of a trained network for the test set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Predictions:
    """The predictions of one record's weights.

    Args:
        probabilities: probability of each class, ``[examples, classes]``, in [0, 1].
        labels: true classes, ``[examples]``.
        loss, accuracy: values of this evaluation by its backend; the accuracy is a fraction.
    """

    probabilities: NDArray[np.float64]
    labels: NDArray[np.int64]
    loss: float
    accuracy: float

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.probabilities.shape[1])

    @property
    def predicted(self) -> NDArray[np.int64]:
        """The likeliest class of each example; the first one of a tie."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether the likeliest class is the true one."""
        return np.asarray(self.predicted == self.labels)


def confusion(found: Predictions) -> NDArray[Any]:
    """Return the confusion matrix: counts of examples, ``[true, predicted]``."""
    counts = np.zeros((found.classes, found.classes), dtype=np.int64)
    np.add.at(counts, (found.labels, found.predicted), 1)
    return counts
