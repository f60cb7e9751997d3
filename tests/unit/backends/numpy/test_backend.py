from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.unit.backends.samples import a_dataset, a_text, in_order, no_tick, options
from tests.unit.workload.samples import a_workload
from trainmark.backends.base import EpochPlan, Steps
from trainmark.backends.numpy.backend import NumpyBackend, NumpyTrainer
from trainmark.data.dataset import Dataset
from trainmark.errors import AbsentDevice, Unsupported
from trainmark.workload import catalog
from trainmark.workload.layers import (
    ChannelDropout,
    Conv2D,
    Dense,
    Dropout,
    Flatten,
    Layer,
    LocalResponseNorm,
    LogSoftmax,
    MaxPool,
    ReLU,
)
from trainmark.workload.losses import (
    ClippedCrossEntropy,
    NegativeLogLikelihood,
    TwoStageCrossEntropy,
)
from trainmark.workload.model import Weights, initial_weights, lay_out
from trainmark.workload.optimizers import SGD, Adam, WeightAverage
from trainmark.workload.pixels import Distortions, Input, prepare
from trainmark.workload.reduce import reduced
from trainmark.workload.spec import Workload
from trainmark.workload.tokens import Tokens

from .differences import by_differences

DATA = a_dataset()
MLP = (Flatten(), Dense(16), ReLU(), Dense(10))


def a_trainer(
    workload: Workload, data: Dataset = DATA, weights: Weights | None = None, **how: Any
) -> NumpyTrainer:
    """A trainer of ``workload`` with the weights of seed 1."""
    model = lay_out(workload)
    trainer = NumpyBackend().trainer(workload, model, data, options(**how))
    trainer.load(initial_weights(model, 1) if weights is None else weights)
    return trainer


def trained(trainer: NumpyTrainer, plan: EpochPlan) -> Steps:
    trainer.begin_epoch(plan)
    return trainer.read(trainer.train(len(plan.sizes), no_tick))


def test_what_it_can_do() -> None:
    can = NumpyBackend().capabilities()
    assert (can.name, can.version, can.styles) == ("numpy", np.__version__, ("idiomatic",))
    assert [(device.id, device.kind) for device in can.devices] == [("cpu", "cpu")]
    assert can.devices[0].precisions == ("fp32", "fp64")


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"device": "cuda:0"}, AbsentDevice),
        ({"style": "fast"}, Unsupported),
        ({"precision": "bf16"}, Unsupported),
    ],
)
def test_what_it_cannot_do(how: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        a_trainer(a_workload(), **how)


NETWORKS = [
    pytest.param(MLP, {}, id="mlp"),
    pytest.param((Flatten(), Dense(10), LogSoftmax()), {"loss": NegativeLogLikelihood()}, id="nll"),
    pytest.param(MLP, {"loss": TwoStageCrossEntropy()}, id="two stages"),
    pytest.param(MLP, {"loss": ClippedCrossEntropy(1e-7)}, id="clipped"),
    pytest.param(
        (
            *(Conv2D(3, 3, "same"), ReLU(), MaxPool(3, 2, "same"), LocalResponseNorm(1, 0.1, 0.75)),
            *(Conv2D(2, 2), ReLU(), Flatten(), Dense(10)),
        ),
        {},
        id="cnn",
    ),
]


def gradients_of(trainer: NumpyTrainer, images: Any, labels: Any) -> dict[str, Any]:
    """Gradient of the mean loss of one batch by every weight; changes nothing."""
    trainer._backward(
        prepare(trainer._workload.input, images, trainer._dtype), labels.astype(np.int64)
    )
    return {name: value.copy() for name, value in trainer._gradients.items()}


@pytest.mark.parametrize(("layers", "changes"), NETWORKS)
def test_the_gradient_of_a_network_is_the_slope_of_its_loss(
    layers: tuple[Layer, ...], changes: dict[str, Any]
) -> None:
    data = a_dataset(train=6)
    trainer = a_trainer(a_workload(*layers, **changes), data)
    weights = {name: value.astype(np.float64) for name, value in trainer.weights().items()}
    gradients = gradients_of(trainer, data.train.images, data.train.labels)
    assert gradients.keys() == weights.keys()
    for name, value in weights.items():

        def loss_with(there: Any, name: str = name) -> float:
            trainer.load(weights | {name: there})
            return trainer.evaluate("train").loss

        np.testing.assert_allclose(gradients[name], by_differences(loss_with, value), atol=1e-7)


FIRST = [
    pytest.param((Flatten(), Dropout(0.2), Dense(10)), id="dropout of the pixels"),
    pytest.param((Dropout(0.2), Flatten(), Dense(10)), id="dropout of the image"),
    pytest.param((ChannelDropout(0.2), Flatten(), Dense(10)), id="dropout of whole channels"),
    pytest.param((MaxPool(2, 2), Flatten(), Dense(10)), id="pooling"),
    pytest.param((ReLU(), Flatten(), Dense(10)), id="relu"),
    pytest.param(
        (LocalResponseNorm(1, 0.1, 0.75), Conv2D(2, 3), Flatten(), Dense(10)), id="normalisation"
    ),
    pytest.param((Flatten(), Dense(10)), id="flatten"),
]


@pytest.mark.parametrize("layers", FIRST)
def test_any_layer_may_come_before_the_first_with_weights(layers: tuple[Layer, ...]) -> None:
    shape = (4, 4, 2)
    steps = trained(
        a_trainer(a_workload(*layers, shape=shape), a_dataset(shape=shape)), in_order(50, 50)
    )
    assert np.isfinite(steps.losses).all()


def test_one_step_of_gradient_descent_by_hand() -> None:
    trainer = a_trainer(a_workload(*MLP, optimizer=SGD(0.5)))
    before = trainer.weights()
    gradients = gradients_of(trainer, DATA.train.images[:10], DATA.train.labels[:10])
    trained(trainer, in_order(10))
    for name, value in trainer.weights().items():
        np.testing.assert_allclose(value, before[name] - 0.5 * gradients[name], atol=1e-6)


def test_the_l2_term_is_in_the_loss_and_shrinks_the_kernel_only() -> None:
    """With a rate of 1, one step takes ``l2 · kernel`` more than without the term."""
    plain = a_trainer(a_workload(Flatten(), Dense(10), optimizer=SGD(1)))
    with_l2 = a_trainer(a_workload(Flatten(), Dense(10, l2=0.1), optimizer=SGD(1)))
    start = plain.weights()
    without = trained(plain, in_order(10))
    there = trained(with_l2, in_order(10))
    expected = 0.5 * 0.1 * float((start["dense1.kernel"].astype(np.float64) ** 2).sum())
    assert without.l2_losses is None
    assert there.l2_losses == pytest.approx([expected])
    assert there.losses == pytest.approx(without.losses + expected)
    difference = plain.weights()["dense1.kernel"] - with_l2.weights()["dense1.kernel"]
    np.testing.assert_allclose(difference, 0.1 * start["dense1.kernel"], atol=1e-6)
    np.testing.assert_allclose(plain.weights()["dense1.bias"], with_l2.weights()["dense1.bias"])


def test_the_l2_term_is_left_out_of_an_evaluation() -> None:
    plain, with_l2 = (a_trainer(a_workload(Flatten(), Dense(10, l2=l2))) for l2 in (0.0, 0.5))
    assert plain.evaluate("test") == with_l2.evaluate("test")


def test_the_loss_of_a_step_is_that_before_its_update() -> None:
    trainer = a_trainer(a_workload(*MLP))
    evaluated = trainer.evaluate("train")
    steps = trained(trainer, in_order(100))
    assert steps.losses == pytest.approx([evaluated.loss])
    assert steps.hits / 100 == pytest.approx([evaluated.accuracy])
    assert trainer.evaluate("train").loss < evaluated.loss


def test_an_untrained_network_guesses() -> None:
    evaluated = a_trainer(a_workload(*MLP)).evaluate("test")
    assert evaluated.loss == pytest.approx(np.log(10), abs=0.4)
    assert evaluated.accuracy < 0.4


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_an_mlp_learns(precision: str) -> None:
    trainer = a_trainer(a_workload(*MLP, optimizer=Adam(0.01)), precision=precision)
    losses = [trained(trainer, EpochPlan((20,) * 5, None)).losses.mean() for _ in range(40)]
    assert losses[-1] < 0.2 * losses[0]
    assert trainer.evaluate("test").accuracy > 0.9


@pytest.mark.parametrize("name", catalog.names())
def test_every_workload_of_the_catalogue_trains(name: str) -> None:
    workload = catalog.find(name)
    if "gpt" in name or name == "resnet50":
        workload = reduced(workload, width=16, depth=1)
    if isinstance(workload.input, Tokens):
        workload = dataclasses.replace(workload, input=Tokens(16))
        data = a_text(40, 24, workload.input.length)
    else:
        if name == "resnet50":
            workload = dataclasses.replace(
                workload, input=dataclasses.replace(workload.input, crop=32)
            )
        data = a_dataset(8, 4, workload.input.shape)
    trainer = a_trainer(workload, data, precision="fp32")
    steps = trained(trainer, in_order(4, 4))
    assert np.isfinite(steps.losses).all()
    chance = np.log(lay_out(workload).classes)
    # Running averages of one step are far from the statistics of a batch.
    loss = steps.losses[0] if "resnet" in name else trainer.evaluate("test").loss
    assert 0.8 * chance < loss < 1.6 * chance
    if name == "cifar10-cnn":
        assert steps.l2_losses is not None
        assert steps.l2_losses[0] == pytest.approx(2.374, abs=0.01)
        assert steps.losses[0] == pytest.approx(4.68, abs=0.1)


def test_both_precisions_agree() -> None:
    workload = catalog.find("mnist-mlp32")
    data = a_dataset(20, 10, workload.input.shape)
    single, double = (
        trained(a_trainer(workload, data, precision=precision), in_order(10, 10)).losses
        for precision in ("fp32", "fp64")
    )
    np.testing.assert_allclose(single, double, rtol=1e-5)
    assert (single != double).any()


def test_evaluating_changes_nothing() -> None:
    workload = a_workload(*MLP[:-1], Dropout(0.5), Dense(10), weight_average=WeightAverage(0.9))
    looked = a_trainer(workload)
    not_looked = a_trainer(workload)
    for trainer in (looked, not_looked):
        trainer.begin_epoch(in_order(50, 50))
        trainer.train(1, no_tick)
        if trainer is looked:
            before = trainer.weights()
            first = trainer.evaluate("test")
            again = trainer.evaluate("test")
            trainer.evaluate("train")
            assert first == again
            assert all(
                np.array_equal(before[name], value) for name, value in trainer.weights().items()
            )
        trainer.train(1, no_tick)
    assert all(
        np.array_equal(value, not_looked.weights()[name])
        for name, value in looked.weights().items()
    )


def test_weights_given_away_are_copies() -> None:
    trainer = a_trainer(a_workload(*MLP), precision="fp32")
    trainer.weights()["dense1.kernel"][:] = 0
    assert trainer.weights()["dense1.kernel"].any()
    given = initial_weights(lay_out(a_workload(*MLP)), 1)
    kept = {name: value.copy() for name, value in given.items()}
    trained(a_trainer(a_workload(*MLP), weights=given, precision="fp32"), in_order(100))
    assert all(np.array_equal(given[name], kept[name]) for name in given)


def test_evaluation_alone_uses_the_weight_average() -> None:
    workload = a_workload(Flatten(), Dense(10), optimizer=SGD(1), weight_average=WeightAverage(0.9))
    trainer = a_trainer(workload, precision="fp32")
    average = trainer.weights()
    trainer.begin_epoch(in_order(25, 25, 25, 25))
    for decay in (1 / 10, 2 / 11, 3 / 12, 4 / 13):  # (1 + t) / (10 + t), still below 0.9
        trainer.train(1, no_tick)
        now = trainer.weights()
        average = {name: decay * average[name] + (1 - decay) * now[name] for name in now}
    plain = dataclasses.replace(workload, weight_average=None)
    with_average = a_trainer(plain, weights=average, precision="fp32").evaluate("test")
    without = a_trainer(plain, weights=trainer.weights(), precision="fp32").evaluate("test")
    assert trainer.evaluate("test").loss == pytest.approx(with_average.loss, rel=1e-5)
    assert abs(without.loss - with_average.loss) > 0.001


def test_loading_rebuilds_the_optimiser() -> None:
    workload = a_workload(*MLP, optimizer=Adam(0.01))
    trainer = a_trainer(workload)
    start = initial_weights(lay_out(workload), 1)
    first = trained(trainer, in_order(50, 50))
    trainer.load(start)
    again = trained(trainer, in_order(50, 50))
    np.testing.assert_array_equal(first.losses, again.losses)


def test_the_given_order_is_the_order_of_the_examples() -> None:
    """At a negligible rate the losses of single examples move as the examples do."""
    workload = a_workload(*MLP, optimizer=SGD(1e-12))
    order = np.random.default_rng(0).permutation(100)
    stored = trained(a_trainer(workload), in_order(*[1] * 100)).losses
    moved = trained(a_trainer(workload), EpochPlan((1,) * 100, order)).losses
    np.testing.assert_allclose(moved, stored[order], rtol=1e-6)
    pairs = trained(a_trainer(workload), EpochPlan((2,) * 50, order)).losses
    np.testing.assert_allclose(pairs, stored[order].reshape(50, 2).mean(axis=1), rtol=1e-6)


def test_a_whole_batch_needs_no_order() -> None:
    whole = trained(a_trainer(a_workload(*MLP)), EpochPlan((100, 100), None, whole=True))
    gathered = trained(
        a_trainer(a_workload(*MLP)), EpochPlan((100, 100), np.tile(np.arange(100), 2))
    )
    np.testing.assert_allclose(whole.losses, gathered.losses)


def test_its_own_shuffle_takes_every_example_once_an_epoch() -> None:
    """One step an example at a negligible rate: the hits of an epoch are those of an evaluation."""
    trainer = a_trainer(a_workload(*MLP, optimizer=SGD(1e-12)))
    evaluated = trainer.evaluate("train")
    first, second = (trained(trainer, EpochPlan((1,) * 100, None)) for _ in range(2))
    assert first.hits.sum() == second.hits.sum() == round(100 * evaluated.accuracy)
    np.testing.assert_allclose(np.sort(first.losses), np.sort(second.losses), rtol=1e-6)
    assert first.losses.tolist() != second.losses.tolist()


def test_its_own_shuffle_depends_on_the_seed() -> None:
    runs = [
        trained(a_trainer(a_workload(*MLP), seed=seed), EpochPlan((20,) * 5, None)).losses
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_every_step_is_ticked() -> None:
    ticks: list[int] = []
    trainer = a_trainer(a_workload(*MLP))
    trainer.begin_epoch(in_order(30, 30, 30, 10))
    trainer.train(3, lambda: ticks.append(1))
    trainer.train(1, lambda: ticks.append(1))
    assert len(ticks) == 4


def test_distortions_vary_in_training_and_not_in_evaluation() -> None:
    spec = Input((4, 4, 1), crop=3, distortions=Distortions(True, 63, (0.2, 1.8)))
    workload = a_workload(Flatten(), Dense(10), input=spec, optimizer=SGD(1e-12))
    trainer = a_trainer(workload)
    assert trainer.evaluate("train") == trainer.evaluate("train")
    first, second = (trained(trainer, in_order(100)).losses[0] for _ in range(2))
    assert first != second
    assert trainer.evaluate("train").loss != pytest.approx(first, rel=1e-9)


def test_two_stages_diverge_where_the_fused_form_goes_on() -> None:
    """Logits 95 apart in single precision: the loss of this step is finite, that of the next is
    not."""
    data = a_dataset(train=10)
    kernel = np.zeros((16, 10), np.float32)
    bias = np.zeros(10, np.float32)
    bias[0] = 95
    losses = {}
    for loss in (TwoStageCrossEntropy(), None):
        workload = a_workload(**({"loss": loss} if loss else {}))
        trainer = a_trainer(
            workload, data, {"dense1.kernel": kernel, "dense1.bias": bias}, precision="fp32"
        )
        losses[loss] = trained(trainer, EpochPlan((10, 10), None, whole=True)).losses
    two_stage = losses[TwoStageCrossEntropy()]
    fused = losses[None]
    assert two_stage[0] == pytest.approx(0.9 * 95, rel=1e-3)
    assert np.isnan(two_stage[1])
    assert fused[0] == pytest.approx(0.9 * 95)
    assert np.isfinite(fused).all()
