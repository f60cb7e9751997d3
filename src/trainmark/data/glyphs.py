"""The skeletons of ten digits: the strokes a pen makes, before anybody's hand shakes.

A glyph is a few strokes, a stroke a few points ``(x, y)`` in a box that is 1 wide and 1 high, y downwards. A stroke is
a smooth curve (Catmull-Rom) through its points, so a corner is written as two strokes that share a point. Points with
equal coordinates are one vertex: move it and every stroke through it follows, so joints stay joined when a hand shakes.

Several glyphs of one digit are the ways in which people write it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Point: TypeAlias = tuple[float, float]
Stroke: TypeAlias = tuple[Point, ...]

SPACING = 0.035
"""Distance between two samples along a stroke, in boxes. Under a pixel at every size that is drawn, so no gaps show."""

_ASPECT = 0.68  # a digit's box is narrower than high; only the spacing of samples depends on it

STROKES: tuple[tuple[tuple[Stroke, ...], ...], ...] = (
    (  # 0: round; narrow
        (
            (
                (0.5, 0.0), (0.14, 0.18), (0.06, 0.5), (0.14, 0.82), (0.5, 1.0),
                (0.86, 0.82), (0.94, 0.5), (0.86, 0.18), (0.5, 0.0),
            ),
        ),
        (
            (
                (0.6, 0.0), (0.3, 0.18), (0.2, 0.55), (0.25, 0.88), (0.48, 1.0),
                (0.72, 0.8), (0.8, 0.45), (0.76, 0.14), (0.6, 0.0),
            ),
        ),
    ),
    (  # 1: a line, twice, since most people write it so; with a flag; with a flag and a foot
        (((0.5, 0.0), (0.5, 0.5), (0.5, 1.0)),),
        (((0.54, 0.0), (0.5, 0.5), (0.46, 1.0)),),
        (((0.24, 0.24), (0.54, 0.0)), ((0.54, 0.0), (0.54, 0.5), (0.54, 1.0))),
        (((0.26, 0.2), (0.52, 0.0)), ((0.52, 0.0), (0.52, 0.5), (0.52, 1.0)), ((0.2, 1.0), (0.52, 1.0), (0.84, 1.0))),
    ),
    (  # 2: a flat foot; a looped foot
        (
            ((0.1, 0.26), (0.28, 0.04), (0.64, 0.02), (0.86, 0.22), (0.74, 0.5), (0.4, 0.78), (0.08, 1.0)),
            ((0.08, 1.0), (0.5, 0.97), (0.94, 1.0)),
        ),
        (
            (
                (0.12, 0.2), (0.4, 0.0), (0.76, 0.12), (0.78, 0.42), (0.5, 0.76), (0.2, 0.98),
                (0.06, 0.88), (0.22, 0.78), (0.52, 0.92), (0.78, 1.0), (0.98, 0.9),
            ),
        ),
    ),
    (  # 3: round; a flat top
        (
            ((0.12, 0.14), (0.44, 0.0), (0.8, 0.12), (0.76, 0.36), (0.4, 0.47)),
            ((0.4, 0.47), (0.8, 0.56), (0.9, 0.8), (0.54, 1.0), (0.08, 0.88)),
        ),
        (
            ((0.12, 0.03), (0.5, 0.02), (0.88, 0.02)),
            ((0.88, 0.02), (0.62, 0.22), (0.42, 0.4)),
            ((0.42, 0.4), (0.8, 0.5), (0.9, 0.76), (0.54, 1.0), (0.08, 0.9)),
        ),
    ),
    (  # 4: open; closed
        (
            ((0.2, 0.02), (0.12, 0.34), (0.1, 0.58)),
            ((0.1, 0.58), (0.5, 0.57), (0.96, 0.54)),
            ((0.78, 0.04), (0.74, 0.5), (0.68, 1.0)),
        ),
        (
            ((0.7, 0.0), (0.38, 0.34), (0.04, 0.68)),
            ((0.04, 0.68), (0.5, 0.68), (0.98, 0.66)),
            ((0.7, 0.0), (0.7, 0.5), (0.68, 1.0)),
        ),
    ),
    (  # 5: square shoulders; one sweep
        (
            ((0.88, 0.02), (0.56, 0.02), (0.24, 0.04)),
            ((0.24, 0.04), (0.2, 0.24), (0.16, 0.44)),
            ((0.16, 0.44), (0.54, 0.36), (0.88, 0.6), (0.78, 0.9), (0.42, 1.0), (0.06, 0.88)),
        ),
        (
            ((0.92, 0.0), (0.58, 0.05), (0.32, 0.08)),
            ((0.32, 0.08), (0.22, 0.38), (0.56, 0.46), (0.8, 0.66), (0.7, 0.92), (0.36, 1.0), (0.06, 0.92)),
        ),
    ),
    (  # 6: curved; straight back
        (
            (
                (0.78, 0.02), (0.42, 0.16), (0.14, 0.54), (0.18, 0.88), (0.5, 1.0),
                (0.84, 0.86), (0.82, 0.6), (0.5, 0.5), (0.16, 0.7),
            ),
        ),
        (((0.56, 0.0), (0.28, 0.36), (0.16, 0.72), (0.34, 0.98), (0.7, 0.94), (0.8, 0.7), (0.54, 0.56), (0.2, 0.78)),),
    ),
    (  # 7: plain; a curved neck; with a bar
        (((0.08, 0.05), (0.5, 0.04), (0.92, 0.03)), ((0.92, 0.03), (0.64, 0.44), (0.42, 1.0))),
        (((0.06, 0.2), (0.1, 0.06), (0.5, 0.05), (0.92, 0.04)), ((0.92, 0.04), (0.76, 0.46), (0.62, 1.0))),
        (
            ((0.08, 0.05), (0.5, 0.04), (0.92, 0.03)),
            ((0.92, 0.03), (0.62, 0.44), (0.38, 1.0)),
            ((0.3, 0.52), (0.58, 0.5), (0.86, 0.5)),
        ),
    ),
    (  # 8: one line that crosses itself; two circles
        (
            (
                (0.72, 0.1), (0.44, 0.0), (0.2, 0.16), (0.36, 0.4), (0.66, 0.56), (0.84, 0.8),
                (0.5, 1.0), (0.16, 0.82), (0.32, 0.56), (0.64, 0.4), (0.82, 0.2), (0.72, 0.1),
            ),
        ),
        (
            ((0.5, 0.46), (0.2, 0.34), (0.22, 0.1), (0.5, 0.0), (0.78, 0.1), (0.8, 0.34), (0.5, 0.46)),
            ((0.5, 0.46), (0.14, 0.62), (0.14, 0.88), (0.5, 1.0), (0.86, 0.88), (0.86, 0.62), (0.5, 0.46)),
        ),
    ),
    (  # 9: a straight stem; a hooked tail
        (
            ((0.8, 0.24), (0.56, 0.02), (0.22, 0.1), (0.16, 0.36), (0.46, 0.5), (0.72, 0.42), (0.8, 0.24)),
            ((0.8, 0.24), (0.76, 0.6), (0.68, 1.0)),
        ),
        (
            ((0.84, 0.22), (0.58, 0.0), (0.22, 0.08), (0.14, 0.34), (0.42, 0.5), (0.74, 0.42), (0.84, 0.22)),
            ((0.84, 0.22), (0.88, 0.6), (0.72, 0.92), (0.4, 1.0), (0.14, 0.9)),
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Glyph:
    """One way to write one digit.

    Attributes:
        digit: 0 to 9.
        vertices: float64 [vertices, 2], the points that a hand moves, x and y in boxes.
        support: int64 [samples, 4], the vertices that each sample of the pen's path depends on.
        weights: float64 [samples, 4], how much: sample = sum over the four of weight * vertex.
    """

    digit: int
    vertices: NDArray[np.float64]
    support: NDArray[np.int64]
    weights: NDArray[np.float64]


def glyph(digit: int, strokes: tuple[Stroke, ...]) -> Glyph:
    """The glyph that these strokes make, sampled every ``SPACING``."""
    numbers: dict[Point, int] = {}
    support: list[tuple[int, ...]] = []
    weights: list[tuple[float, ...]] = []
    for stroke in strokes:
        path = [numbers.setdefault(point, len(numbers)) for point in stroke]
        closed = path[0] == path[-1]
        for k in range(len(path) - 1):
            # Beyond an open end the curve has no point, so the end is taken twice.
            before = path[k - 1] if k else path[-2] if closed else path[0]
            after = path[k + 2] if k + 2 < len(path) else path[1] if closed else path[-1]
            samples = max(1, round(_distance(stroke[k], stroke[k + 1]) / SPACING))
            for step in range(samples):
                support.append((before, path[k], path[k + 1], after))
                weights.append(_catmull_rom(step / samples))
    return Glyph(digit, np.array(list(numbers), np.float64), np.array(support, np.int64), np.array(weights, np.float64))


def glyphs() -> tuple[tuple[Glyph, ...], ...]:
    """Every glyph, by digit: ``glyphs()[7]`` are the ways to write a seven."""
    return tuple(tuple(glyph(digit, strokes) for strokes in ways) for digit, ways in enumerate(STROKES))


def _distance(a: Point, b: Point) -> float:
    # sqrt, not hypot: only what IEEE 754 rounds exactly is the same on every machine, and the drawing must be.
    return math.sqrt((a[0] - b[0]) * (a[0] - b[0]) * _ASPECT * _ASPECT + (a[1] - b[1]) * (a[1] - b[1]))


def _catmull_rom(t: float) -> tuple[float, float, float, float]:
    """Weights of the four points around a place at ``t`` in [0, 1) between the middle two.

    Source: E. Catmull, R. Rom, "A class of local interpolating splines", 1974, with tension 1/2.
    """
    return (
        0.5 * t * (t * (2.0 - t) - 1.0),
        0.5 * (t * t * (3.0 * t - 5.0) + 2.0),
        0.5 * t * (t * (4.0 - 3.0 * t) + 1.0),
        0.5 * t * t * (t - 1.0),
    )
