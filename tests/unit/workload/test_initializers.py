from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from trainmark.workload.decode import Misfit
from trainmark.workload.initializers import (
    Constant,
    FanInUniform,
    GlorotUniform,
    Initializer,
    TruncatedNormal,
    Uniform,
)


def draw(initializer: Initializer, fan_in: int = 100, fan_out: int = 50) -> np.ndarray:
    return initializer.draw(np.random.default_rng(0), (fan_in, 1000), fan_in, fan_out)


@pytest.mark.parametrize(
    ("initializer", "bound"),
    # sqrt(6/150), 1/sqrt(100)
    [(GlorotUniform(), 0.2), (FanInUniform(), 0.1), (Uniform(0.01), 0.01)],
)
def test_uniform_ones_fill_their_bounds_evenly(initializer: Initializer, bound: float) -> None:
    values = draw(initializer)
    assert 0.999 * bound < values.max() <= bound
    assert -bound <= values.min() < -0.999 * bound
    assert values.std() == pytest.approx(bound / np.sqrt(3), rel=0.01)


def test_truncated_normal_never_goes_beyond_two_deviations() -> None:
    values = draw(TruncatedNormal(0.5))
    assert 0.99 < np.abs(values).max() <= 1.0
    assert values.std() == pytest.approx(0.8796 * 0.5, rel=0.01)
    assert values.mean() == pytest.approx(0, abs=0.005)
    inside_one = float((np.abs(values) < 0.5).mean())
    # of a normal, cut at two deviations
    assert inside_one == pytest.approx(0.6827 / 0.9545, abs=0.01)


def test_constant() -> None:
    assert (draw(Constant(0.1)) == 0.1).all()
    assert not draw(Constant()).any()


@pytest.mark.parametrize("build", [lambda: Uniform(0), lambda: TruncatedNormal(-1)])
def test_a_width_is_above_zero(build: Callable[[], object]) -> None:
    with pytest.raises(Misfit, match="a number above 0"):
        build()
