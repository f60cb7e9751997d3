from __future__ import annotations

import numpy as np

from trainmark.analysis.predictions import Predictions
from trainmark.report.gallery import picture

IMAGES = np.zeros((3, 28, 28, 1), np.uint8)


def test_wrong_predictions_are_drawn_in_order_of_confidence() -> None:
    likely = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    svg = picture(Predictions(likely, np.array([0, 1, 0]), 0.5, 1 / 3), IMAGES, ("cat", "dog"))
    assert svg.count("<image ") == 3
    assert svg.index("cat</text>") < svg.index("cat → dog") < svg.index("dog → cat")


def test_without_mistakes_it_says_so() -> None:
    likely = np.array([[0.9, 0.1]] * 3)
    assert "most confident first: none" in picture(
        Predictions(likely, np.zeros(3, np.int64), 0.1, 1.0), IMAGES, "ab"
    )
