"""Generate ``synthetic-digits``.

They are digits of a 5×7 font, randomly bent, moved and blurred, with noise.

All machines must generate the same bytes, since the catalogue has their SHA-256. So this only uses
operations that are exactly rounded by IEEE 754, one at a time (+, -, *, /, floor and comparisons;
no exp, no sin, no matrix product), and only the uniform numbers of PCG64.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

SIDE = 28
"""Height and width of an image in pixels."""

SEED = {"train": 1, "test": 2}
"""Seeds of the two splits."""

CHUNK = 100
"""Images generated at once: few enough to stay in the CPU's cache."""

FONT = (
    "01110 10001 10001 10001 10001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00010 00100 01000 11111",
    "01110 10001 00001 00110 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 00100 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
)
_ROWS = 7
"""Rows of a digit in the font."""
_COLUMNS = 5
"""Columns of a digit in the font."""

# A pixel at (x, y) shows the font at (u, v), each from -1 to 1. u and v are polynomials in (1, x,
# y, xy, x², y²). The means of their coefficients scale the digit; their spreads shift, scale,
# rotate, shear and bend it.
_MEAN_U = (0.0, 2.2, 0.0, 0.0, 0.0, 0.0)
_SPREAD_U = (0.31, 0.36, 0.5, 0.54, 0.54, 0.54)
_MEAN_V = (0.0, 0.0, 1.5, 0.0, 0.0, 0.0)
_SPREAD_V = (0.19, 0.22, 0.17, 0.3, 0.3, 0.3)

_THRESHOLD = (0.25, 0.5)
"""Ink below this is not visible: for a broad pen, for a fine pen."""
_CONTRAST = (2.0, 5.0)
"""How fast ink turns black above the threshold: for blurred digits, for sharp digits."""
_NOISE = 0.5
"""Largest share of a pixel's ink that is missing."""


def draw(
    seed: int, examples: int, progress: Callable[[int], None]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Generate ``examples`` digits.

    Args:
        seed: the same seed gives the same bytes on every machine.
        examples: number of digits.
        progress: called with the number of images generated so far.

    Returns:
        Images uint8 ``[examples, 28, 28]``, 0 for paper and 255 for ink, and labels uint8
        ``[examples]``.
    """
    random = np.random.Generator(np.random.PCG64(seed))
    font = _font()
    images = np.empty((examples, SIDE, SIDE), np.uint8)
    labels = np.empty(examples, np.uint8)
    for first in range(0, examples, CHUNK):
        some = slice(first, min(first + CHUNK, examples))
        n = some.stop - some.start
        labels[some] = np.floor(random.random(n) * 10)
        column = (_map(random, n, _MEAN_U, _SPREAD_U) + 1) * ((_COLUMNS - 1) / 2) + 1
        row = (_map(random, n, _MEAN_V, _SPREAD_V) + 1) * ((_ROWS - 1) / 2) + 1
        ink = _sample(font, labels[some], row, column)
        threshold, contrast = (_uniform(random, n, *limits) for limits in (_THRESHOLD, _CONTRAST))
        ink = np.clip((ink - threshold) * contrast, 0, 1)
        ink *= 1 - np.float32(_NOISE) * random.random(ink.shape, np.float32)
        images[some] = np.floor(255 * ink + np.float32(0.5))
        progress(some.stop)
    return images, labels


def _font() -> Floats:
    """Return the ten digits, each with a margin of one cell: float32 ``[10, 9, 7]``."""
    digits = np.array([[list(row) for row in digit.split()] for digit in FONT], np.float32)
    return np.pad(digits, ((0, 0), (1, 1), (1, 1)))


def _uniform(random: np.random.Generator, n: int, low: float, high: float) -> Floats:
    """Draw one number per image, ``[n, 1, 1]``."""
    return np.float32(low) + np.float32(high - low) * random.random((n, 1, 1), np.float32)


def _map(
    random: np.random.Generator, n: int, mean: tuple[float, ...], spread: tuple[float, ...]
) -> Floats:
    """Draw one coordinate of every pixel's place in the font, ``[n, 28, 28]``."""
    x = (np.arange(SIDE, dtype=np.float32) - np.float32((SIDE - 1) / 2)) / np.float32(SIDE / 2)
    y = x[:, None]
    place = np.zeros((n, SIDE, SIDE), np.float32)
    for centre, width, term in zip(
        mean, spread, (np.float32(1), x, y, x * y, x * x, y * y), strict=True
    ):
        # The sum of three uniform numbers: almost Gaussian, without a logarithm.
        bell = random.random((3, n, 1, 1), np.float32)
        place += (
            np.float32(centre) + np.float32(width) * (2 * (bell[0] + bell[1] + bell[2]) - 3)
        ) * term
    return place


def _sample(font: Floats, labels: NDArray[np.uint8], row: Floats, column: Floats) -> Floats:
    """Sample the font at these places: ``[n, 28, 28]``.

    Values are interpolated between the four nearest cells.
    """
    _, height, width = font.shape
    row, column = (
        np.clip(place, 0, most - np.float32(1.001))
        for place, most in ((row, height), (column, width))
    )
    top = row.astype(np.int32)
    left = column.astype(np.int32)
    down = row - top
    right = column - left
    cell = (labels.astype(np.int32)[:, None, None] * height + top) * width + left
    cells = font.ravel()
    upper = cells[cell] * (1 - right) + cells[cell + 1] * right
    lower = cells[cell + width] * (1 - right) + cells[cell + width + 1] * right
    ink: Floats = upper * (1 - down) + lower * down
    return ink
