"""Each update next to its formula, written out for one number in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from trainmark.backends.numpy.optimizers import Updater
from trainmark.workload.optimizers import SGD, Adam, Optimizer, RMSprop, Staircase

GRADIENTS = [1.0, -2.0, 0.5, 0.0, 3.0]
START = 2.0


def course(
    spec: Optimizer, name: str = "dense1.kernel", gradients: list[float] = GRADIENTS
) -> list[float]:
    """The weight after each update."""
    weights = {name: np.array([START])}
    seen = []
    updater = Updater(spec, weights, weights)
    for gradient in gradients:
        updater.update(weights, {name: np.array([gradient])})
        seen.append(float(weights[name][0]))
    return seen


def plain() -> list[float]:
    w = START
    seen = []
    for g in GRADIENTS:
        w = w - 0.1 * g
        seen.append(w)
    return seen


def momentum() -> list[float]:
    w = START
    b = 0.0
    seen = []
    for g in GRADIENTS:
        b = 0.9 * b + g
        w = w - 0.1 * b
        seen.append(w)
    return seen


def momentum_with_decay() -> list[float]:
    w = START
    v = 0.0
    seen = []
    for g in GRADIENTS:
        v = 0.9 * v - 0.1 * (g + 0.01 * w)
        w = w + v
        seen.append(w)
    return seen


def adam() -> list[float]:
    w = START
    m = 0.0
    v = 0.0
    seen = []
    for t, g in enumerate(GRADIENTS, 1):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        w = w - 0.1 * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 0.01)
        seen.append(w)
    return seen


def rmsprop() -> list[float]:
    w = START
    a = 0.0
    seen = []
    for g in GRADIENTS:
        a = 0.9 * a + 0.1 * g**2
        w = w - 0.1 * g / (math.sqrt(a) + 0.01)
        seen.append(w)
    return seen


@pytest.mark.parametrize(
    ("spec", "formula"),
    [
        (SGD(0.1), plain),
        (SGD(0.1, momentum=0.9, momentum_form="buffer"), momentum),
        # the same, as the rate does not change
        (SGD(0.1, momentum=0.9, momentum_form="velocity"), momentum),
        (SGD(0.1, momentum=0.9, momentum_form="velocity", weight_decay=0.01), momentum_with_decay),
        (SGD(0.1, momentum=0.9, momentum_form="buffer", weight_decay=0.01), momentum_with_decay),
        (Adam(0.1, epsilon=0.01), adam),
        (RMSprop(0.1, epsilon=0.01), rmsprop),
    ],
)
def test_the_first_five_updates(spec: Optimizer, formula: Callable[[], list[float]]) -> None:
    assert course(spec) == pytest.approx(formula(), rel=1e-12)


def test_the_two_forms_of_momentum_differ_when_the_rate_changes() -> None:
    down = Staircase(0.1, 1)  # 1, then 0.1
    buffer = course(SGD(1, momentum=0.5, momentum_form="buffer", staircase=down), gradients=[1, 1])
    velocity = course(
        SGD(1, momentum=0.5, momentum_form="velocity", staircase=down), gradients=[1, 1]
    )
    assert buffer == pytest.approx([START - 1, START - 1 - 0.1 * 1.5])
    assert velocity == pytest.approx([START - 1, START - 1 - (0.5 * 1 + 0.1 * 1)])


@pytest.mark.parametrize(
    ("name", "decay_biases", "after"),
    [
        ("dense1.kernel", True, 1.8),
        ("dense1.kernel", False, 1.8),
        ("dense1.bias", True, 1.8),
        ("dense1.bias", False, 2.0),
    ],
)
def test_weight_decay_without_a_gradient(name: str, decay_biases: bool, after: float) -> None:
    assert course(
        SGD(1, weight_decay=0.1, decay_biases=decay_biases), name, [0.0]
    ) == pytest.approx([after])


@pytest.mark.parametrize("spec", [SGD(1, staircase=Staircase(0.5, 2)), SGD(1)])
def test_the_staircase_counts_updates(spec: SGD) -> None:
    rates = [1, 1, 0.5, 0.5, 0.25] if spec.staircase else [1] * 5
    assert course(spec, gradients=[1] * 5) == pytest.approx((START - np.cumsum(rates)).tolist())


@pytest.mark.parametrize("kind", [Adam, RMSprop])
def test_the_other_optimisers_take_the_staircase_too(kind: Callable[..., Optimizer]) -> None:
    whole, halved = (course(kind(1, staircase=stairs)) for stairs in (None, Staircase(0.5, 2)))
    assert whole[:2] == halved[:2]
    steps = np.diff(whole)
    half_steps = np.diff(halved)
    assert half_steps[1:3] == pytest.approx(0.5 * steps[1:3])


def test_epsilon_of_rmsprop_stands_outside_the_root() -> None:
    rate = 1.0
    g = 0.01
    epsilon = 0.01
    root = math.sqrt(0.1) * g  # of 0.1 g²: 0.00316
    outside = rate * g / (root + epsilon)  # 0.760
    inside = rate * g / math.sqrt(root**2 + epsilon)  # 0.100
    assert inside < 0.2 < 0.7 < outside
    assert course(RMSprop(rate, epsilon=epsilon), gradients=[g]) == pytest.approx([START - outside])


def test_adam_adds_epsilon_to_the_root_of_the_corrected_moment() -> None:
    rate = 1.0
    g = 0.01
    epsilon = 0.01
    corrected = rate * g / (g + epsilon)  # 0.5: after one update m̂ = g and v̂ = g²
    inside = rate * g / math.sqrt(g**2 + epsilon)  # 0.0995
    # 0.031: 'epsilon hat' of TensorFlow
    uncorrected = rate * g / (g + epsilon / math.sqrt(1 - 0.999))
    assert max(inside, uncorrected) < 0.1 < corrected
    assert course(Adam(rate, epsilon=epsilon), gradients=[g]) == pytest.approx([START - corrected])


def test_the_first_step_of_adam_has_the_size_of_the_rate() -> None:
    for gradient in (1e-3, 1.0, -1e3):
        assert course(Adam(0.1), gradients=[gradient]) == pytest.approx(
            [START - math.copysign(0.1, gradient)], rel=1e-4
        )


def test_each_weight_has_its_own_state() -> None:
    names = ("dense1.kernel", "dense1.bias")
    weights = {name: np.array([START]) for name in names}
    updater = Updater(Adam(0.1, epsilon=0.01), weights, weights)
    for gradient in GRADIENTS:
        updater.update(weights, {names[0]: np.array([gradient]), names[1]: np.array([-gradient])})
    assert weights[names[0]] == pytest.approx([adam()[-1]])
    assert weights[names[1]] == pytest.approx([2 * START - adam()[-1]])


@pytest.mark.parametrize("spec", [SGD(0.1, 0.9, weight_decay=0.1), Adam(0.1), RMSprop(0.1)])
def test_updates_keep_single_precision_and_leave_gradients_alone(spec: Optimizer) -> None:
    weights = {"dense1.kernel": np.ones(3, np.float32)}
    gradients = {"dense1.kernel": np.full(3, 0.5, np.float32)}
    before = weights["dense1.kernel"]
    updater = Updater(spec, weights, weights)
    updater.update(weights, gradients)
    updater.update(weights, gradients)
    assert weights["dense1.kernel"] is before  # in place
    assert before.dtype == np.float32
    assert (gradients["dense1.kernel"] == 0.5).all()
