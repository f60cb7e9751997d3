from __future__ import annotations

import numpy as np
import pytest

from trainmark.data.glyphs import SPACING, STROKES, Glyph, glyph, glyphs

EVERY = pytest.mark.parametrize("drawn", [g for alike in glyphs() for g in alike])


def path(drawn: Glyph) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The samples, [samples, 2]."""
    return np.einsum("sk,skc->sc", drawn.weights, drawn.vertices[drawn.support])


def test_there_are_ten_digits() -> None:
    assert [{g.digit for g in alike} for alike in glyphs()] == [{digit} for digit in range(10)]


@EVERY
def test_weights_are_an_average(drawn: Glyph) -> None:
    # Otherwise a digit that is moved would not move as a whole.
    assert drawn.weights.sum(axis=1) == pytest.approx(np.ones(len(drawn.weights)))


@EVERY
def test_strokes_stay_near_the_box(drawn: Glyph) -> None:
    assert path(drawn).min() > -0.1
    assert path(drawn).max() < 1.1


@EVERY
def test_samples_leave_no_gaps(drawn: Glyph) -> None:
    # Each sample but a stroke's last has a neighbour closer than two spacings.
    samples = path(drawn)
    distances = np.linalg.norm(samples[:, None] - samples[None], axis=2) + 10 * np.eye(len(samples))
    assert distances.min(axis=1).max() < 2.5 * SPACING


def test_strokes_that_share_a_point_stay_joined() -> None:
    seven = glyph(7, STROKES[7][0])
    corner = np.flatnonzero((seven.vertices == [0.92, 0.03]).all(axis=1))
    assert len(corner) == 1
    assert len(seven.vertices) == 5


def test_a_curve_runs_through_its_points() -> None:
    bow = glyph(0, (((0.0, 0.0), (0.5, 0.5), (0.0, 1.0)),))
    samples = path(bow)
    assert samples[0].tolist() == [0, 0]
    assert np.abs(samples - [0.5, 0.5]).sum(axis=1).min() == 0
