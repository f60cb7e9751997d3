"""``synthetic-digits``: handwritten-looking digits drawn by code, for when there is neither data nor network.

A hand is imitated: a way to write the digit is chosen, its vertices shake, it is stretched, slanted, turned and moved;
a pen, fine or broad, follows the strokes; here and there it leaves a stray mark.

The bytes are the same on every machine and with every NumPy: the catalogue knows their SHA-256, and two machines can be
compared. Therefore only operations that IEEE 754 rounds exactly are used, each in its own step (+, -, *, /, floor,
comparison: no exp or sin, no matrix product, no sum over an axis, whose order and fusing depend on the processor), and
only the random stream of ``Generator(PCG64).random``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainmark.data.glyphs import Glyph, glyphs
from trainmark.data.ink import SIDE, Floats, Paths, blot, ink

SEED = {"train": 1, "test": 2}
"""What the two splits of ``synthetic-digits`` are drawn from."""

CHUNK = 1_000
"""Images drawn at once: enough to keep NumPy busy, few enough to stay in the processor's cache."""


@dataclass(frozen=True)
class Hand:
    """How much a hand varies. Lengths are in pixels unless said otherwise.

    Spreads are standard deviations of a bell that ends at three of them. The defaults are tuned so that
    ``mnist-mlp512`` reaches after three epochs what it reaches on MNIST: about 98 % on the test images.
    """

    height: float = 18.5
    width: float = 12.5
    stretch: float = 0.09
    """Spread of height and width, as a fraction."""
    shake: float = 0.055
    """Spread of each vertex, in boxes."""
    slant: float = 0.2
    """Spread of the shear: pixels sidewards for a pixel upwards."""
    turn: float = 0.06
    """Spread of the tangent of half the angle: 0.06 is 7 degrees."""
    shift: float = 1.3
    """Spread of the position, each way."""
    pen: tuple[float, float] = (0.25, 0.02)
    """Ink that paper must take before it shows, for a fine pen and for a broad one."""
    stray: float = 0.12
    """Fraction of images with a stray mark."""


def draw(
    seed: int, examples: int, progress: Callable[[int], None], hand: Hand | None = None
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Draws ``examples`` digits.

    Args:
        seed: the same seed gives the same bytes, everywhere.
        examples: how many.
        progress: called with the number of images drawn so far.
        hand: how much they vary; the default is the hand of ``synthetic-digits``.

    Returns:
        Images uint8 [examples, 28, 28], 0 for paper and 255 for ink, and labels uint8 [examples].
    """
    hand = hand or Hand()
    random = np.random.Generator(np.random.PCG64(seed))
    ways = glyphs()
    images = np.empty((examples, SIDE, SIDE), np.uint8)
    labels = np.empty(examples, np.uint8)
    for first in range(0, examples, CHUNK):
        some = slice(first, min(first + CHUNK, examples))
        n = some.stop - some.start
        labels[some] = np.floor(random.random(n) * 10)
        paths = [*_digits(random, labels[some], ways, hand), _stray_marks(random, n, hand)]
        pen = hand.pen[0] + (hand.pen[1] - hand.pen[0]) * random.random(n)
        images[some] = blot(ink(paths, n), pen.astype(np.float32))
        progress(some.stop)
    return images, labels


def _digits(
    random: np.random.Generator, labels: NDArray[np.uint8], ways: tuple[tuple[Glyph, ...], ...], hand: Hand
) -> Iterator[Paths]:
    """The strokes of the digit of every label, one ``Paths`` for each glyph."""
    n = len(labels)
    way = random.random(n)
    vertices = max(len(glyph.vertices) for alike in ways for glyph in alike)
    shake_x, shake_y = hand.shake * _bell(random, (2, n, vertices))
    placing = _Placing.random(random, n, hand)
    for digit, alike in enumerate(ways):
        choice = np.floor(way * len(alike))
        for k, glyph in enumerate(alike):
            chosen = np.flatnonzero((labels == digit) & (choice == k))
            own = slice(len(glyph.vertices))
            x, y = placing.of(
                chosen, glyph.vertices[:, 0] + shake_x[chosen, own], glyph.vertices[:, 1] + shake_y[chosen, own]
            )
            yield Paths(chosen, _along(glyph, x), _along(glyph, y))


@dataclass(frozen=True)
class _Placing:
    """For each image the affine map from the glyph's box to pixels. Arrays are float64 [n, 1]."""

    xx: Floats
    xy: Floats
    yx: Floats
    yy: Floats
    x0: Floats
    y0: Floats

    @classmethod
    def random(cls, random: np.random.Generator, n: int, hand: Hand) -> _Placing:
        stretch_x, stretch_y, slant, turn, shift_x, shift_y = _bell(random, (6, n, 1))
        width = hand.width * (1 + hand.stretch * stretch_x)
        height = hand.height * (1 + hand.stretch * stretch_y)
        slant = hand.slant * slant
        # The cosine and sine of twice the angle whose tangent is t, without calling either.
        t = hand.turn * turn
        cosine, sine = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
        centre = (SIDE - 1) / 2
        return cls(
            xx=cosine * width,
            xy=-(cosine * slant + sine) * height,
            yx=sine * width,
            yy=(cosine - sine * slant) * height,
            x0=centre + hand.shift * shift_x,
            y0=centre + hand.shift * shift_y,
        )

    def of(self, chosen: NDArray[np.int64], x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Points given in boxes, in pixels of the chosen images: float64 [chosen, points] each."""
        x, y = x - 0.5, y - 0.5  # the box turns about its middle
        return (
            self.xx[chosen] * x + self.xy[chosen] * y + self.x0[chosen],
            self.yx[chosen] * x + self.yy[chosen] * y + self.y0[chosen],
        )


def _bell(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Mean 0, standard deviation 1, never beyond 3: the sum of three uniform numbers, which needs no logarithm."""
    return 2 * (random.random(shape) + random.random(shape) + random.random(shape)) - 3


def _along(glyph: Glyph, vertices: Floats) -> Floats:
    """The samples of the pen's path: vertices [n, vertices] to [n, samples]."""
    a, b, c, d = (glyph.weights[:, k] * vertices[:, glyph.support[:, k]] for k in range(4))
    return ((a + b) + c) + d


def _stray_marks(random: np.random.Generator, n: int, hand: Hand) -> Paths:
    """A short straight mark anywhere on some of the ``n`` images."""
    x, y, dx, dy = random.random((4, n, 1))
    marked = np.flatnonzero(random.random(n) < hand.stray)
    along = np.arange(12) / 12 - 0.5
    x, y, dx, dy = (SIDE * x)[marked], (SIDE * y)[marked], (12 * (dx - 0.5))[marked], (12 * (dy - 0.5))[marked]
    return Paths(marked, x + dx * along, y + dy * along)
