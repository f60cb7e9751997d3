from __future__ import annotations

from collections.abc import Callable

import pytest

from trainmark.workload.decode import Misfit
from trainmark.workload.optimizers import (
    SGD,
    Adam,
    PiecewiseLinear,
    RMSprop,
    Staircase,
    WarmupCosine,
    WeightAverage,
    learning_rate_at,
)


def test_without_a_staircase_the_learning_rate_stays() -> None:
    assert [learning_rate_at(Adam(0.5), step) for step in (0, 1, 10**6)] == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("step", "rate"), [(0, 0.1), (136_717, 0.1), (136_718, 0.01), (273_435, 0.01), (273_436, 0.001)]
)
def test_a_staircase_steps_down_at_its_edges(step: int, rate: float) -> None:
    assert learning_rate_at(SGD(0.1, staircase=Staircase(0.1, 136_718)), step) == pytest.approx(
        rate
    )


@pytest.mark.parametrize(
    ("step", "decay"),
    [(0, 0.1), (1, 2 / 11), (10, 11 / 20), (89_979, 89_980 / 89_989), (10**6, 0.9999)],
)
def test_the_weight_average_starts_quickly(step: int, decay: float) -> None:
    assert WeightAverage(0.9999).decay_at(step) == pytest.approx(decay)


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: SGD(0), "learning_rate"),
        (lambda: Adam(-1), "learning_rate"),
        (lambda: RMSprop(float("nan")), "learning_rate"),
        (lambda: SGD(1, momentum=1), "momentum"),
        (lambda: SGD(1, weight_decay=-1), "weight_decay"),
        (lambda: Adam(1, beta1=1), "beta1"),
        (lambda: Adam(1, beta2=-0.1), "beta2"),
        (lambda: Adam(1, epsilon=0), "epsilon"),
        (lambda: RMSprop(1, rho=1), "rho"),
        (lambda: RMSprop(1, epsilon=0), "epsilon"),
        (lambda: Staircase(0, 1), "factor"),
        (lambda: Staircase(1, 0), "steps"),
        (lambda: WeightAverage(1), "decay"),
        (lambda: WarmupCosine(0, 0), "steps"),
        (lambda: WarmupCosine(0, 10**12), "steps"),
        (lambda: WarmupCosine(5, 5), "warmup"),
        (lambda: PiecewiseLinear(((0, 1),)), "points"),
        (lambda: PiecewiseLinear(((1, 1), (0, 1))), "points"),
        (lambda: PiecewiseLinear(((-1, 1), (1, 1))), "points"),
        (lambda: PiecewiseLinear(((0, 1), (1e300, 1))), "points"),
        (lambda: PiecewiseLinear(((0, 1), (1, -0.1))), "points"),
    ],
)
def test_an_optimiser_refuses_what_makes_no_sense(build: Callable[[], object], field: str) -> None:
    with pytest.raises(Misfit) as caught:
        build()
    assert caught.value.path == (field,)
