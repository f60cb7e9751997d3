"""Reduced variants of a workload, and the products of a step."""

from __future__ import annotations

import dataclasses
import math

import pytest

from trainmark.workload import catalog
from trainmark.workload.layers import (
    ChannelDropout,
    Dropout,
    LocalResponseNorm,
    MaxPool,
    ReLU,
    every,
)
from trainmark.workload.model import lay_out
from trainmark.workload.products import Convolution, convolutions, products
from trainmark.workload.reduce import (
    ablated,
    shrunk,
    with_batch,
    without_chance,
    without_elementwise,
)

ALL = ("mnist-mlp32", "mnist-mlp128", "mnist-mlp512", "mnist-cnn", "cifar10-cnn")


@pytest.mark.parametrize("name", ALL)
def test_shrunk_has_the_same_operations_and_hardly_any_work(name: str) -> None:
    workload = catalog.find(name)
    small = shrunk(workload)
    assert [layer.kind for layer in small.model] == [layer.kind for layer in workload.model]
    assert lay_out(small).classes == lay_out(workload).classes
    assert small.batches.size == 1
    assert lay_out(small).training_flops < 0.05 * lay_out(workload).training_flops


@pytest.mark.parametrize("name", ALL)
def test_without_elementwise_layers_the_products_stay(name: str) -> None:
    workload = catalog.find(name)
    plain = without_elementwise(workload)
    assert plain != workload
    assert without_elementwise(plain) == plain
    assert not any(isinstance(layer, (ReLU, Dropout, LocalResponseNorm)) for layer in plain.model)
    assert lay_out(plain).training_flops == lay_out(workload).training_flops


@pytest.mark.parametrize("name", catalog.names())
def test_every_workload_can_be_taken_apart(name: str) -> None:
    workload = catalog.find(name)
    if name == "resnet50":  # its last images have one pixel
        workload = dataclasses.replace(workload, input=dataclasses.replace(workload.input, crop=32))
    plain = without_elementwise(workload)
    assert lay_out(plain).training_flops == lay_out(workload).training_flops
    for small in (shrunk(workload), shrunk(plain)):
        for plan in lay_out(small).every_layer:
            assert (
                plan.layer.kind != "batch-norm"
                or small.batches.size * math.prod(plan.input_shape[:-1]) > 1
            )


@pytest.mark.parametrize(
    ("name", "causes"),
    [
        ("mnist-cnn", ["memory"]),
        ("cifar10-resnet9", ["norms", "memory"]),
        ("shakespeare-gpt", ["attention", "norms", "memory", "embedding"]),
    ],
)
def test_each_ablation_removes_one_kind_of_layer_more(name: str, causes: list[str]) -> None:
    found = ablated(catalog.find(name))
    assert list(found) == causes
    gone: set[str] = set()
    for cause, workload in found.items():
        kinds = {layer.kind for layer in every(workload.model)}
        gone |= {
            "attention": {"attention"},
            "norms": {"layer-norm", "batch-norm"},
            "memory": {"gelu", "relu"},
        }.get(cause, {"dense", "tied-head", "residual"})
        assert not kinds & gone
        for each in (workload, shrunk(workload)):
            assert lay_out(each).every_layer
    if "embedding" in found:
        assert [each.kind for each in found["embedding"].model] == [
            "token-embedding",
            "position-embedding",
        ]
        assert lay_out(found["memory"]).training_flops > 0


@pytest.mark.parametrize(("size", "left"), [(2, 1), (3, 3)])
def test_pooling_is_thinned_where_that_leaves_the_shapes(size: int, left: int) -> None:
    """Windows of 2 leave 12 of 24 places, as single ones do; windows of 3 leave 11."""
    workload = catalog.find("mnist-cnn")
    changed = [
        dataclasses.replace(each, size=size) if isinstance(each, MaxPool) else each
        for each in workload.model
    ]
    plain = without_elementwise(dataclasses.replace(workload, model=tuple(changed)))
    assert {layer.size for layer in plain.model if isinstance(layer, MaxPool)} == {left}


def test_without_distortions_the_network_sees_the_same_shape() -> None:
    workload = catalog.find("cifar10-cnn")
    assert workload.input.distortions is not None
    plain = workload.without_distortions()
    assert plain.input.distortions is None
    assert lay_out(plain).input_shape == lay_out(workload).input_shape


@pytest.mark.parametrize("name", ALL)
def test_without_chance_only_the_weights_are_random(name: str) -> None:
    plain = without_chance(catalog.find(name).with_schedule(steps=7))
    assert not any(isinstance(layer, (Dropout, ChannelDropout)) for layer in plain.model)
    assert plain.input.distortions is None
    assert (plain.schedule.protocol, plain.schedule.evaluate, plain.schedule.steps) == (
        "fresh",
        "end",
        7,
    )
    assert plain.optimizer == catalog.find(name).optimizer


def test_another_batch_drops_what_is_left_at_the_end() -> None:
    batches = with_batch(catalog.find("mnist-mlp128"), 7000).batches
    assert batches.sizes(60_000) == (7000,) * 8


@pytest.mark.parametrize("name", ALL)
def test_the_products_are_all_the_flops_of_a_step(name: str) -> None:
    model = lay_out(catalog.find(name))
    asked = [
        *products(model, 100),
        *(each for layer in convolutions(model, 100) for each in layer.products()),
    ]
    assert sum(2 * m * k * n * number for m, k, n, _, number in asked) == 100 * model.training_flops
    turned = [product for product in asked if product.turned]
    assert len(turned) == len(model.weighted_layers), "one gradient of a kernel each"


def test_equal_padding_on_all_sides_is_added_by_the_framework() -> None:
    (first, second), (plain, _) = (
        convolutions(lay_out(catalog.find(name)), 2) for name in ("cifar10-cnn", "mnist-cnn")
    )
    assert (first.padding, first.input_shape) == (2, (2, 24, 24, 3))
    assert second.padding == 2
    assert (plain.padding, plain.input_shape) == (0, (2, 28, 28, 1))
    lopsided = Convolution(2, 10, 10, 1, 4, 8, by_input=False)  # one zero before, two after
    assert lopsided.input_shape == (2, 13, 13, 1)
