"""A network cut into stages: nothing is lost or repeated, and the longest is as short as
possible."""

from __future__ import annotations

import itertools

import pytest

from trainmark.errors import Unsupported
from trainmark.workload import catalog
from trainmark.workload.model import Model, lay_out
from trainmark.workload.stages import cut


def has_weights(stage: tuple) -> bool:
    return any(plan.weights or has_weights((*plan.body, *plan.shortcut)) for plan in stage)


def cuttings() -> list[tuple[str, int]]:
    return [
        (name, count)
        for name in (
            "mnist-mlp32",
            "mnist-mlp128",
            "mnist-mlp512",
            "mnist-cnn",
            "cifar10-cnn",
            "cifar10-resnet9",
        )
        for count in range(
            1, 1 + sum(has_weights((plan,)) for plan in lay_out(catalog.find(name)).layers)
        )
    ]


def cost(stage: tuple) -> int:
    return sum(plan.training_macs for plan in stage)


@pytest.mark.parametrize(("name", "count"), cuttings())
def test_every_layer_is_in_one_stage_and_every_stage_has_weights(name: str, count: int) -> None:
    model = lay_out(catalog.find(name))
    stages = cut(model, count)
    assert len(stages) == count
    assert tuple(itertools.chain.from_iterable(stages)) == model.layers
    assert all(map(has_weights, stages))


@pytest.mark.parametrize(("name", "count"), cuttings())
def test_no_other_cut_between_layers_has_a_shorter_longest_stage(name: str, count: int) -> None:
    model = lay_out(catalog.find(name))
    longest = max(map(cost, cut(model, count)))
    for edges in itertools.combinations(range(1, len(model.layers)), count - 1):
        parts = [model.layers[a:b] for a, b in itertools.pairwise((0, *edges, len(model.layers)))]
        if all(map(has_weights, parts)):
            assert longest <= max(map(cost, parts))


def test_what_has_no_weights_stays_with_the_layer_before_it() -> None:
    first, second = cut(lay_out(catalog.find("mnist-mlp128")), 2)
    assert first[-1].layer.kind == "relu"
    assert second[0].kernel_shape is not None


def test_a_head_that_is_tied_to_the_embedding_is_refused() -> None:
    with pytest.raises(Unsupported, match="a network with a tied head can't be cut into stages"):
        cut(lay_out(catalog.find("shakespeare-gpt")), 2)


def test_more_stages_than_layers_with_weights_are_refused() -> None:
    model = lay_out(catalog.find("mnist-mlp512"))
    with pytest.raises(Unsupported, match="can't be cut into 4 stages: expected at most 3"):
        cut(model, 4)


def test_a_network_of_one_layer_is_one_stage() -> None:
    model = lay_out(catalog.find("mnist-mlp32"))
    assert cut(Model(model.input_shape, model.layers), 1) == (model.layers,)
