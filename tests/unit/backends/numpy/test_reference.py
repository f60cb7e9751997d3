from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.unit.backends.samples import a_dataset, no_tick, options
from tests.unit.workload.samples import a_workload
from trainmark.backends.base import EpochPlan
from trainmark.backends.numpy.arithmetic import Moved
from trainmark.backends.numpy.backend import NumpyBackend, NumpyTrainer
from trainmark.backends.numpy.layers import MaxPoolModule, build
from trainmark.backends.numpy.reference import SHOWN, Expected, Reference, pooled
from trainmark.backends.stepwise import State
from trainmark.data.dataset import Dataset
from trainmark.workload.layers import (
    Conv2D,
    Dense,
    Flatten,
    LocalResponseNorm,
    LogSoftmax,
    MaxPool,
    ReLU,
)
from trainmark.workload.losses import NegativeLogLikelihood
from trainmark.workload.model import initial_weights, lay_out, plans_of
from trainmark.workload.pixels import Input, Standardize
from trainmark.workload.precision import Precision
from trainmark.workload.spec import Workload

MARGIN = 4
"""Bound of an error, in norms of the moves, as ``trainmark parity`` has it."""
DATA = a_dataset(train=40)
MLP = (Flatten(), Dense(16, l2=0.1), ReLU(), Dense(10))
CNN = (
    Conv2D(4, 3, "same"),
    ReLU(),
    MaxPool(3, 2, "same"),
    LocalResponseNorm(1, 0.1, 0.75),
    Flatten(),
    Dense(10),
)
WORKLOADS = [
    pytest.param(a_workload(*MLP), id="mlp"),
    pytest.param(
        a_workload(Flatten(), Dense(10), LogSoftmax(), loss=NegativeLogLikelihood()), id="nll"
    ),
    pytest.param(a_workload(*CNN), id="cnn"),
    pytest.param(
        a_workload(*MLP, input=Input((4, 4, 1), standardize=Standardize(0.3, 0.1))),
        id="standardised",
    ),
    pytest.param(
        a_workload(*MLP, input=Input((4, 4, 1), standardize_each=True)), id="each standardised"
    ),
]


def weights_of(workload: Workload) -> dict[str, NDArray[np.float64]]:
    return {
        name: value.astype(np.float64)
        for name, value in initial_weights(lay_out(workload), 1).items()
    }


def expected_of(
    workload: Workload,
    weights: Any = None,
    images: Any = DATA.train.images,
    labels: Any = DATA.train.labels,
    precision: Precision = "fp32",
) -> Expected:
    reference = Reference(workload, lay_out(workload), precision, np.random.default_rng(1))
    weights = weights_of(workload) if weights is None else weights
    return reference.step(weights, images, labels.astype(np.int64), shows=True)


def trained(
    workload: Workload, repeats: Any, precision: str = "fp64", data: Dataset = DATA
) -> tuple[NumpyTrainer, float]:
    """The NumPy backend after one step on the examples that count, and its loss."""
    trainer = NumpyBackend().trainer(
        workload, lay_out(workload), data, options(precision=precision)
    )
    trainer.set_state(State(weights_of(workload)))
    examples = np.repeat(np.arange(len(repeats)), repeats)
    trainer.begin_epoch(EpochPlan((len(examples),), examples))
    return trainer, float(trainer.read(trainer.train(1, no_tick)).losses[0])


def norm(values: Any) -> float:
    return float(np.sqrt((np.asarray(values) ** 2).sum()))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_its_results_are_those_of_the_numpy_backend_in_float64(workload: Workload) -> None:
    expected = expected_of(workload)
    trainer, loss = trained(workload, expected.repeats)
    assert expected.loss == pytest.approx(loss, rel=1e-14)
    gradients = trainer.gradients()
    assert expected.gradients.keys() == gradients.keys()
    for name, value in gradients.items():
        np.testing.assert_allclose(expected.gradients[name], value, rtol=1e-12, atol=1e-15)
    trainer.set_state(State(weights_of(workload)))
    shown = trainer.activations(np.arange(SHOWN), training=False)
    assert list(expected.activations) == list(shown)
    for name, value in shown.items():
        np.testing.assert_allclose(expected.activations[name], value, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_loss_of_a_batch(workload: Workload) -> None:
    reference = Reference(workload, lay_out(workload), "fp32", np.random.default_rng(1))
    weights = weights_of(workload)
    found = reference.loss(weights, DATA.train.images, DATA.train.labels.astype(np.int64))
    _, loss = trained(workload, np.ones(len(DATA.train), np.int64))
    assert found == pytest.approx(loss, rel=1e-14)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_moves_bound_the_rounding_of_float32_and_not_much_more(workload: Workload) -> None:
    expected = expected_of(workload)
    trainer, loss = trained(workload, expected.repeats, "fp32")
    assert abs(loss - expected.loss) <= MARGIN * expected.loss_moves <= 1e-5 * expected.loss
    pairs = [(trainer.gradients(), expected.gradients, expected.gradient_moves)]
    trainer.set_state(State(weights_of(workload)))
    found = trainer.activations(np.arange(SHOWN), training=False)
    pairs += [(found, expected.activations, expected.activation_moves)]
    for found, exact, moves in pairs:
        for name, value in exact.items():
            assert 1 / 500 < norm(found[name] - value) / (MARGIN * moves[name]) < 1 / 2, name


def test_moves_are_those_of_the_precision() -> None:
    by_precision = {
        each: expected_of(a_workload(), precision=each) for each in ("fp64", "fp32", "tf32", "bf16")
    }
    sizes = {each: found.gradient_moves["dense1.kernel"] for each, found in by_precision.items()}
    assert sizes["fp64"] < 1e-6 * sizes["fp32"]
    assert 100 * sizes["fp32"] < sizes["tf32"] < sizes["bf16"] / 2
    assert by_precision["tf32"].loss == by_precision["fp32"].loss, "only the moves differ"


ONE_UNIT = a_workload(Flatten(), Dense(1), ReLU(), Dense(10))


def with_unit_at(value: float, example: int, workload: Workload = ONE_UNIT) -> dict[str, Any]:
    """Weights with which the first hidden unit has a value for an example."""
    weights = weights_of(workload)
    x = DATA.train.images[example].reshape(-1) / 255.0
    weights["dense1.bias"][0] = value - x @ weights["dense1.kernel"][:, 0]
    return weights


@pytest.mark.parametrize("value", [1e-9, -1e-9])
def test_an_example_within_rounding_of_a_kink_is_replaced(value: float) -> None:
    expected = expected_of(ONE_UNIT, with_unit_at(value, example=3))
    assert expected.near_kinks == 1
    assert expected.repeats.tolist() == [2, 1, 1, 0, *[1] * 36]
    assert expected.gradient_moves["dense1.kernel"] < 1e-5 * norm(
        expected.gradients["dense1.kernel"]
    )


def test_a_unit_further_away_is_not() -> None:
    expected = expected_of(ONE_UNIT, with_unit_at(1e-4, example=3))
    assert expected.near_kinks == 0 and set(expected.repeats) == {1}


def test_exact_zeros_are_not_near() -> None:
    weights = weights_of(ONE_UNIT)
    weights["dense1.kernel"][:] = 0.0
    weights["dense1.bias"][:] = 0.0
    assert expected_of(ONE_UNIT, weights).near_kinks == 0


def test_if_most_examples_are_near_a_kink_all_of_them_count() -> None:
    images, labels = (
        np.repeat(values[3:4], 10, axis=0) for values in (DATA.train.images, DATA.train.labels)
    )
    workload = a_workload(Flatten(), Dense(8), ReLU(), Dense(10))
    moves = expected_of(workload, images=images, labels=labels).activation_moves["dense1"]
    value = moves / (10 * 8) ** 0.5  # rounding alone seldom moves the unit that far
    expected = expected_of(workload, with_unit_at(value, 3, workload), images, labels)
    assert (expected.near_kinks, set(expected.repeats)) == (10, {1})
    whole = norm(expected.gradients["dense1.kernel"][:, 0])  # it is 0 on the other side
    assert 0.5 * whole < expected.gradient_moves["dense1.kernel"] < 1.1 * whole


POOLED = a_workload(Conv2D(1, 1), MaxPool(2, 2), Flatten(), Dense(10), shape=(4, 4, 2))


def with_pair(second: int, apart: float) -> Expected:
    """In one window of example 3, two values exceed the others, and differ by ``apart`` ·
    (``second`` - 1) / 255."""
    images = a_dataset(train=40, shape=(4, 4, 2)).train.images.copy()
    images[..., 0] = np.arange(40 * 16).reshape(40, 4, 4) % 200
    images[..., 1] = 1
    images[3, 0, :2, 0] = 250
    images[3, 0, 1, 1] = second
    weights = weights_of(POOLED)
    weights["conv2d1.kernel"][0, 0, :, 0] = (1.0, apart)
    weights["conv2d1.bias"][:] = 0.0
    return expected_of(POOLED, weights, images)


def test_an_example_with_two_maxima_within_rounding_is_replaced() -> None:
    expected = with_pair(second=2, apart=1e-6)
    assert expected.near_kinks == 1
    assert expected.repeats.tolist() == [2, 1, 1, 0, *[1] * 36]


@pytest.mark.parametrize(
    ("second", "apart"), [(1, 1e-6), (2, 1e-2)], ids=["equal inputs", "far apart"]
)
def test_equal_inputs_and_clear_maxima_are_not_near(second: int, apart: float) -> None:
    expected = with_pair(second, apart)
    assert expected.near_kinks == 0 and set(expected.repeats) == {1}


def test_the_other_side_of_a_maximum_is_the_runner_up() -> None:
    (plan,) = plans_of([MaxPool(2, 2)], (2, 4, 1))
    module = build(plan, {}, {}, np.random.default_rng(0))
    x = np.array([[3.0, 1.0, 9.0, 8.0], [2.0, 0.0, 7.0, 6.0]]).reshape(1, 2, 4, 1)
    assert isinstance(module, MaxPoolModule)
    module.forward(x, True)
    module.take_other_side(np.array([[[[True], [False]]]]), x)
    gradient = module.backward(np.array([[[[1.0], [5.0]]]]))
    assert gradient[0, :, :, 0].tolist() == [[0, 0, 5, 0], [1, 0, 0, 0]]


def test_steps_with_small_moves_get_those_of_a_typical_step() -> None:
    one = expected_of(a_workload())
    one = dataclasses.replace(
        one, loss=2.0, gradients={"a": np.array([3.0, 4.0]), "b": np.array([1.0])}
    )
    steps = [
        dataclasses.replace(one, loss_moves=moves, gradient_moves={"a": 5 * moves, "b": 1e-3})
        for moves in (0.0, 1.4)
    ]
    low, high = pooled(steps)
    assert low.loss_moves == pytest.approx(1.4 / 2**0.5), (
        "the root of the mean square, as a share of the loss"
    )
    assert low.gradient_moves == pytest.approx({"a": 5 * 1.4 / 2**0.5, "b": 1e-3})
    assert (high.loss_moves, high.gradient_moves) == (1.4, {"a": 7.0, "b": 1e-3})


def test_a_step_without_gradient_or_loss_widens_no_other() -> None:
    usual, empty = (
        dataclasses.replace(expected_of(a_workload(*MLP)), loss=loss) for loss in (2.0, 0.0)
    )
    nothing = {name: np.zeros_like(value) for name, value in empty.gradients.items()}
    still = dataclasses.replace(
        empty, gradients=nothing, gradient_moves=dict.fromkeys(nothing, 0.0)
    )
    found, _ = pooled([usual, still])
    assert found.gradient_moves == pytest.approx(usual.gradient_moves)
    assert found.loss_moves == pytest.approx(usual.loss_moves)


def test_equal_values_in_few_bits_are_rounded_alike() -> None:
    # to the nearest bf16, by its bits
    stored = np.array([1.0037], np.float32).view(np.uint32) + np.uint32(0x8000)
    alike = float((stored & np.uint32(0xFFFF0000)).view(np.float32)[0]) / 1.0037 - 1
    values = np.full((4_000, 1), 1.0037)
    sums = [
        Moved("bf16", np.random.default_rng(seed)).column_sums(values)[0] for seed in range(100)
    ]
    assert abs(alike) > 3e-3
    assert np.mean(sums) / 4_014.8 - 1 == pytest.approx(alike, abs=7e-4), (
        "the moves average out, the rounding does not"
    )


@pytest.mark.parametrize(("precision", "alike"), [("tf32", -(2.0**-12)), ("fp32", 0.0)])
def test_equal_factors_in_few_bits_are_rounded_alike(precision: Precision, alike: float) -> None:
    ones = np.ones((1, 4_000))
    factors = np.full((4_000, 1), 0.1)  # 0.1 is rounded by this share
    sums = [
        Moved(precision, np.random.default_rng(seed)).product(ones, factors)[0, 0]
        for seed in range(100)
    ]
    assert np.mean(sums) / 400 - 1 == pytest.approx(alike, abs=abs(alike) / 4 + 1e-6)
