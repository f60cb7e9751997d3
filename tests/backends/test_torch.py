"""The PyTorch backend beyond its losses: weights, dropout, evaluation, loaders, precision."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from trainmark.backends.base import EpochPlan, Options
from trainmark.data.dataset import Dataset, Split
from trainmark.errors import AbsentDevice, Unsupported
from trainmark.workload import catalog
from trainmark.workload.layers import ChannelDropout, Dropout
from trainmark.workload.model import initial_weights, lay_out
from trainmark.workload.spec import Workload

torch = pytest.importorskip("torch", reason="torch is not installed")

from trainmark.backends.torch import network, pixels  # noqa: E402
from trainmark.backends.torch.backend import TorchBackend  # noqa: E402

BOTH = pytest.mark.parametrize("style", ["idiomatic", "fast"])


def numbered(shape: tuple[int, int, int], examples: int = 230) -> Dataset:
    """Each image is filled with its own index, so that a batch tells which examples it holds."""
    images = np.zeros((examples, *shape), dtype=np.uint8)
    images += np.arange(examples, dtype=np.uint8)[:, None, None, None]
    labels = (np.arange(examples) % 10).astype(np.uint8)
    return Dataset("numbered", Split(images, labels), Split(images.copy(), labels.copy()), "", True)


def trainer(workload: Workload, data: Dataset, style: str, precision: str = "fp32", device: str = "cpu") -> Any:
    options = Options(style, device, precision, seed=1)  # type: ignore[arg-type]
    made = TorchBackend().trainer(workload, lay_out(workload), data, options)
    made.load(initial_weights(lay_out(workload), seed=1))
    return made


@pytest.mark.parametrize("name", ["mnist-mlp512", "mnist-cnn", "cifar10-cnn"])
def test_weights_come_back_as_they_went_in(name: str) -> None:
    model = lay_out(catalog.find(name))
    weights = initial_weights(model, seed=5)
    built = network.build(model)
    network.load_weights(built, model, weights)
    back = network.read_weights(built, model)
    assert back.keys() == weights.keys()
    for key, value in weights.items():
        np.testing.assert_array_equal(back[key], value)


def test_parameter_count() -> None:
    for name in ("mnist-mlp32", "mnist-mlp128", "mnist-cnn", "mnist-mlp512", "cifar10-cnn"):
        model = lay_out(catalog.find(name))
        assert sum(parameter.numel() for parameter in network.build(model).parameters()) == model.parameters


@BOTH
def test_an_epoch_takes_every_example_once(style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with the framework's own shuffle, and with a smaller last batch."""
    workload = catalog.find("mnist-mlp512")
    made = trainer(workload, numbered((28, 28, 1)), style)
    taken: list[int] = []
    compute = made._batch_loss

    def watched(x: Any, y: Any) -> Any:
        taken.extend((x[:, 0, 0, 0] * 255).round().int().tolist())
        return compute(x, y)

    monkeypatch.setattr(made, "_batch_loss", watched)
    sizes = workload.batches.sizes(230)
    for _ in range(2):
        made.begin_epoch(EpochPlan(sizes, None))
        made.train(len(sizes), lambda: None)
    assert sizes == (128, 102)
    assert sorted(taken[:230]) == sorted(taken[230:]) == list(range(230))
    assert taken[:230] != taken[230:] and taken[:230] != list(range(230))


@BOTH
def test_an_injected_order_is_taken_and_survives_pauses(style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = catalog.find("mnist-mlp128")
    made = trainer(workload, numbered((28, 28, 1)), style)
    taken: list[int] = []
    compute = made._batch_loss

    def watched(x: Any, y: Any) -> Any:
        taken.extend((x[:, 0, 0, 0] * 256).round().int().tolist())
        return compute(x, y)

    monkeypatch.setattr(made, "_batch_loss", watched)
    order = np.random.default_rng(0).permutation(230)[:200]
    ticks: list[int] = []
    made.begin_epoch(EpochPlan((100, 100), order))
    first = made.train(1, lambda: ticks.append(1))
    second = made.train(1, lambda: ticks.append(1))
    assert taken == order.tolist()
    assert len(ticks) == 2
    assert made.read(first).losses[0] != made.read(second).losses[0], "results of the first call are not overwritten"


@BOTH
@pytest.mark.parametrize("kind", [Dropout, ChannelDropout])
def test_dropout_statistics(style: str, kind: type) -> None:
    rate = 0.3
    module = network._module(
        next(
            plan
            for plan in lay_out(
                dataclasses.replace(catalog.find("mnist-cnn"), model=(kind(rate), *catalog.find("mnist-cnn").model))
            ).layers
        )
    )
    torch.manual_seed(0)
    out = module(torch.ones(2_000, 16, 4, 4))
    kept = out != 0
    assert out[kept].unique().tolist() == pytest.approx([1 / (1 - rate)])
    maps = kept.flatten(2)
    if kind is ChannelDropout:
        assert bool((maps.all(dim=2) | ~maps.any(dim=2)).all()), "whole maps"
        share = maps[:, :, 0].float().mean()
    else:
        assert not bool((maps.all(dim=2) | ~maps.any(dim=2)).all())
        share = kept.float().mean()
    assert float(share) == pytest.approx(1 - rate, abs=0.01)


@BOTH
def test_evaluation_leaves_training_alone(style: str) -> None:
    workload = catalog.find("cifar10-cnn")
    made = trainer(workload, numbered((32, 32, 3), 40), style)
    before = made.weights()
    assert made.evaluate("test") == made.evaluate("test")
    for key, value in made.weights().items():
        np.testing.assert_array_equal(value, before[key])
    assert made._network.training


@BOTH
def test_the_weight_average_is_what_is_evaluated(style: str) -> None:
    """After one update from t = 0 the average is 0.1 of the old weights and 0.9 of the new."""
    workload = dataclasses.replace(
        catalog.find("cifar10-cnn").deterministic(),
        batches=dataclasses.replace(catalog.find("cifar10-cnn").batches, size=8),
    )
    made = trainer(workload, numbered((32, 32, 3), 40), style, "fp64")
    old = [parameter.detach().clone() for parameter in made._parameters]
    made.begin_epoch(EpochPlan((8,), np.arange(8)))
    made.train(1, lambda: None)
    for average, before, after in zip(made._average, old, made._parameters, strict=True):
        torch.testing.assert_close(average, 0.1 * before + 0.9 * after.detach())


def test_distorted_images_are_those_of_the_specification() -> None:
    """Brightness cancels in the standardisation; crops, mirror images and contrast are drawn for each image."""
    spec = catalog.find("cifar10-cnn").input
    image = torch.randint(0, 256, (1, 32, 32, 3), dtype=torch.uint8).repeat(400, 1, 1, 1)
    torch.manual_seed(0)
    x = pixels.transform(spec, image, torch.float64)
    assert x.shape == (400, 3, 24, 24)
    torch.testing.assert_close(x.mean(dim=(1, 2, 3)), torch.zeros(400, dtype=torch.float64), atol=1e-9, rtol=0)
    torch.testing.assert_close(x.std(dim=(1, 2, 3), correction=0), torch.ones(400, dtype=torch.float64))
    assert len({tuple(row[0, 0, :3].tolist()) for row in x}) > 390, "each image has its own draws"


@BOTH
def test_a_16_bit_step_learns(style: str) -> None:
    workload = catalog.find("mnist-mlp128")
    made = trainer(workload, numbered((28, 28, 1)), style, "bf16")
    made.begin_epoch(EpochPlan((100, 100), np.arange(200)))
    losses = made.read(made.train(2, lambda: None)).losses
    assert np.isfinite(losses).all()
    assert made._parameters[0].dtype == torch.float32


def test_ieee_single_precision_is_asked_for() -> None:
    torch.set_float32_matmul_precision("high")
    settings = trainer(catalog.find("mnist-mlp128"), numbered((28, 28, 1)), "fast").settings()
    assert settings["float32_matmul_precision"] == "highest"
    assert settings["cudnn_allow_tf32"] is False


@BOTH
def test_loading_again_starts_a_new_optimizer(style: str) -> None:
    """What the continued protocol needs: the same weights twice must give the same losses twice."""
    workload = catalog.find("mnist-mlp32").deterministic()
    made = trainer(workload, numbered((28, 28, 1)), style)
    weights = made.weights()
    plan = EpochPlan((230,) * 3, np.tile(np.arange(230), 3), True)
    made.compile(plan)
    runs = []
    for _ in range(2):
        made.load(weights)
        made.begin_epoch(plan)
        runs.append(made.read(made.train(3, lambda: None)).losses)
    np.testing.assert_array_equal(runs[0], runs[1])


def test_what_it_cannot_do_is_refused() -> None:
    workload = catalog.find("mnist-mlp128")
    with pytest.raises(AbsentDevice, match="cuda:9"):
        trainer(workload, numbered((28, 28, 1)), "fast", device="cuda:9")
    with pytest.raises(Unsupported, match="fp16"):
        trainer(workload, numbered((28, 28, 1)), "fast", "fp16")
    with pytest.raises(Unsupported, match="memory-fraction"):
        TorchBackend().trainer(
            workload,
            lay_out(workload),
            numbered((28, 28, 1)),
            Options("fast", "cpu", "fp32", seed=1, memory_fraction=0.5),
        )
