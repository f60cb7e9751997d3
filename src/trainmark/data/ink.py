"""From the path of a pen to grey pixels, for thousands of images at once.

The same rule as in ``trainmark.data.synthetic``: nothing whose rounding depends on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

SIDE = 28
"""Height and width of an image in pixels."""

MARGIN = 3
"""Pixels around an image that take ink and are cut off, so that a pen leaves at the edge instead of piling up there."""

_PAPER = SIDE + 2 * MARGIN

_CONTRAST = 3
"""How fast ink above the pen's threshold turns from paper to black: the softness of a stroke's edge."""


@dataclass(frozen=True, eq=False)
class Paths:
    """Where the pen was, on some of the images.

    Attributes:
        images: int64 [m], the images' numbers.
        x: float64 [m, samples], pixels from the left.
        y: float64 [m, samples], pixels from the top.
    """

    images: NDArray[np.int64]
    x: Floats
    y: Floats


def ink(paths: list[Paths], n: int) -> NDArray[np.float32]:
    """Ink on ``n`` papers, float32 [n, paper, paper]: a unit for each sample, shared among the four nearest pixels."""
    image = np.concatenate([np.repeat(path.images, path.x.shape[1]) for path in paths])
    # A place off the paper is moved to the paper's edge, which is cut off.
    x = np.clip(np.concatenate([path.x.ravel() for path in paths]) + MARGIN, 0, _PAPER - 1.001)
    y = np.clip(np.concatenate([path.y.ravel() for path in paths]) + MARGIN, 0, _PAPER - 1.001)
    column, row = x.astype(np.int64), y.astype(np.int64)
    right, below = x - column, y - row
    corner = (image * _PAPER + row) * _PAPER + column
    pixels = n * _PAPER * _PAPER
    wet = np.bincount(corner, (1 - right) * (1 - below), pixels)
    wet += np.bincount(corner + 1, right * (1 - below), pixels)
    wet += np.bincount(corner + _PAPER, (1 - right) * below, pixels)
    wet += np.bincount(corner + _PAPER + 1, right * below, pixels)
    return wet.astype(np.float32).reshape(n, _PAPER, _PAPER)


def blot(wet: NDArray[np.float32], pen: NDArray[np.float32]) -> NDArray[np.uint8]:
    """What is seen of the ink: float32 [n, paper, paper] and the pen [n] to uint8 [n, 28, 28].

    Ink spreads, twice by the weights 1 2 1 each way; what exceeds the pen's threshold shows, soon as full black.
    """
    for _ in range(2):
        wet = wet[:, :-2] + 2 * wet[:, 1:-1] + wet[:, 2:]
        wet = wet[:, :, :-2] + 2 * wet[:, :, 1:-1] + wet[:, :, 2:]
    spare = MARGIN - 2
    seen = wet[:, spare:-spare, spare:-spare] / 256  # each pass added 16 times what there was
    return np.floor(255 * np.clip(_CONTRAST * (seen - pen[:, None, None]), 0, 1) + 0.5).astype(np.uint8)
