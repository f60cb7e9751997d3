from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.backends.samples import a_dataset, no_tick, options
from tests.unit.workload.samples import a_workload
from trainmark.backends.numpy.backend import NumpyBackend
from trainmark.backends.numpy.reference import SHOWN
from trainmark.errors import DataError, TrainmarkError
from trainmark.execute.protocol.answers import ReferenceComputed
from trainmark.execute.worker.parity_reference import (
    STEPS,
    batches_of,
    cut,
    ordered_plans,
    parity_steps,
)
from trainmark.workload.initializers import Uniform
from trainmark.workload.layers import Dense, Dropout, Flatten, ReLU
from trainmark.workload.model import initial_weights, lay_out
from trainmark.workload.optimizers import SGD, Adam, Staircase, WeightAverage
from trainmark.workload.schedule import Batches, Schedule
from trainmark.workload.spec import Workload

from .reference_steps import reference_steps

MLP = (Flatten(), Dense(8, l2=0.1), ReLU(), Dense(10))


def test_the_first_steps_include_the_smaller_batch_of_an_epoch(tmp_path: Path) -> None:
    said: list[Any] = []
    found, _ = parity_steps(reference_steps(a_workload(*MLP), tmp_path, send=said.append))
    assert [problem.state.step for problem in found] == list(range(STEPS))
    assert [len(problem.examples) for problem in found] == [10] * 6 + [3] + [10] * 3
    assert said == [ReferenceComputed(done, STEPS) for done in range(1, STEPS + 1)]
    epoch = np.concatenate([problem.shown for problem in found[:7]])
    assert sorted(epoch) == list(range(63)), "an epoch of the part"
    for problem in found:
        assert set(problem.examples) <= set(problem.shown)
        assert len(problem.shown) <= SHOWN


def test_activations_are_kept_of_the_first_and_the_last_step(tmp_path: Path) -> None:
    found, _ = parity_steps(reference_steps(a_workload(*MLP), tmp_path))
    assert [bool(problem.expected.activations) for problem in found] == [
        True,
        *[False] * (STEPS - 2),
        True,
    ]
    assert list(found[0].expected.activations) == ["input", "flatten1", "dense1", "relu1", "dense2"]


@pytest.mark.parametrize("precision", ["fp32", "fp64", "bf16"])
def test_states_are_those_of_a_training_in_float32_numbers(tmp_path: Path, precision: str) -> None:
    workload = a_workload(*MLP, optimizer=Adam(0.01), weight_average=WeightAverage(0.99))
    found, _ = parity_steps(reference_steps(workload, tmp_path, precision))
    weights = initial_weights(lay_out(workload), 1)
    for name, value in weights.items():
        np.testing.assert_array_equal(found[0].state.weights[name], value)
        np.testing.assert_array_equal(found[0].state.average[name], value)
        assert not found[0].state.slots["mean"][name].any()
    for one, other in pairwise(found):
        trainer = NumpyBackend().trainer(workload, lay_out(workload), a_dataset(), options())
        trainer.set_state(one.state)
        trainer._gradients.update(one.expected.gradients)
        trainer._updater.update(trainer._weights, trainer._gradients)
        after = trainer.state()
        for name in weights:
            np.testing.assert_allclose(other.state.weights[name], after.weights[name], rtol=2**-23)
            np.testing.assert_allclose(
                other.state.slots["square"][name], after.slots["square"][name], rtol=2**-23
            )
            assert (other.state.average[name] != one.state.average[name]).any()
    kept = [found[-1].state.weights, found[-1].state.average, *found[-1].state.slots.values()]
    assert all(
        (value == value.astype(np.float32)).all() for arrays in kept for value in arrays.values()
    )


def test_steps_around_a_later_change_of_the_rate_are_added(tmp_path: Path) -> None:
    for at, later in ((4, []), (100, [99, 100])):
        optimizer = SGD(0.1, momentum=0.9, staircase=Staircase(0.5, at))
        found, _ = parity_steps(reference_steps(a_workload(*MLP, optimizer=optimizer), tmp_path))
        assert [problem.state.step for problem in found] == [*range(STEPS), *later]


def test_the_whole_training_set_in_every_step(tmp_path: Path) -> None:
    found, order = parity_steps(
        reference_steps(
            a_workload(batches=Batches("full"), schedule=Schedule(2, shuffle="never")), tmp_path
        )
    )
    assert all(problem.examples.tolist() == list(range(100)) for problem in found)
    assert len(order) == 2, "an epoch is a step"


@pytest.mark.parametrize(
    "workload",
    [a_workload(*MLP), a_workload(Dropout(0.5), *MLP, batches=Batches(10, last="drop"))],
    ids=["all", "without a rest"],
)
def test_losses_show_the_order_of_batches_without_dropout(
    tmp_path: Path, workload: Workload
) -> None:
    _, losses = parity_steps(reference_steps(workload, tmp_path))
    plain = workload.deterministic()
    data = cut(a_dataset(train=100), plain)
    trainer: Any = NumpyBackend().trainer(plain, lay_out(plain), data, options())
    expected = []
    for plan in ordered_plans(plain, len(data.train), 1):
        trainer.begin_epoch(plan)
        for _ in batches_of(plan, len(data.train)):
            trainer.load(initial_weights(lay_out(plain), 1))
            expected.append(float(trainer.read(trainer.train(1, no_tick)).losses[0]))
    assert losses == pytest.approx(expected, rel=1e-13)
    assert len(losses) == (7 if workload.batches.last == "keep" else 6) + 3


def test_too_few_examples_for_a_batch_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="no step to train: expected at least one whole batch, found 100 training"
    ):
        reference_steps(a_workload(*MLP, batches=Batches(101, last="drop")), tmp_path)


def test_a_bound_that_is_no_number_is_an_error(tmp_path: Path) -> None:
    wide = Uniform(1e20)  # its products are finite in float64, but not in float32
    large = a_workload(
        Flatten(), Dense(8, kernel=wide), Dense(10, kernel=wide), optimizer=SGD(1e-40)
    )
    with (
        np.errstate(all="ignore"),
        pytest.raises(TrainmarkError, match=r"diverges in step 0, for the reference too"),
    ):
        reference_steps(large, tmp_path)


def test_a_training_that_diverges_in_the_reference_is_an_error(tmp_path: Path) -> None:
    with (
        np.errstate(all="ignore"),
        pytest.raises(TrainmarkError, match=r"diverges in step \d+, for the reference too"),
    ):
        reference_steps(a_workload(*MLP, optimizer=SGD(1e30)), tmp_path)
