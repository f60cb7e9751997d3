"""Probabilities, and the confusion matrix."""

from __future__ import annotations

import numpy as np
import pytest

from trainmark.analysis.predictions import Predictions, confusion
from trainmark.workload.losses import probabilities


def test_of_logits_they_are_the_softmax_however_large() -> None:
    found = probabilities(np.array([[0.0, np.log(3.0)], [1000.0, 0.0]]))
    np.testing.assert_allclose(found, [[0.25, 0.75], [1.0, 0.0]])


def test_of_logarithms_they_are_what_these_are_of() -> None:
    np.testing.assert_allclose(probabilities(np.log([[0.25, 0.75]])), [[0.25, 0.75]])


def test_confusions_are_counted_by_the_true_class() -> None:
    likely = np.array([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]])
    found = Predictions(likely, np.array([0, 1, 1, 2]), 0.5, 0.75)
    assert confusion(found).tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
    assert found.right.tolist() == [True, True, False, True]
    assert found.right.mean() == pytest.approx(found.accuracy)
