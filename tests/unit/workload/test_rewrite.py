from __future__ import annotations

import numpy as np
import pytest

from tests.unit.backends.samples import a_dataset, options
from trainmark.backends.numpy.backend import NumpyBackend
from trainmark.workload import catalog
from trainmark.workload.layers import (
    ChannelDropout,
    Conv2D,
    Dense,
    Dropout,
    Flatten,
    Layer,
    LocalResponseNorm,
    MaxPool,
    ReLU,
)
from trainmark.workload.model import Model, initial_weights, lay_out
from trainmark.workload.rewrite import pool_first

from .samples import a_workload

HALVE, OVERLAP = MaxPool(2, 2), MaxPool(3, 2, "same")
COMMUTING: list[tuple[Layer, ...]] = [
    (Conv2D(3, 2), ReLU(), HALVE),
    (Conv2D(3, 2), ReLU(), ChannelDropout(0.4), OVERLAP),
    (Conv2D(3, 2), ChannelDropout(0.4), HALVE, ReLU(), OVERLAP),
    (ReLU(), OVERLAP, Conv2D(2, 1)),
]
OTHERS: list[tuple[Layer, ...]] = [
    (Conv2D(3, 2), Dropout(0.4), HALVE),
    (Conv2D(3, 2), LocalResponseNorm(1, 0.1, 0.75), HALVE),
    (Conv2D(3, 2), HALVE, ReLU()),
]


def laid_out(layers: tuple[Layer, ...]) -> Model:
    return lay_out(a_workload(*layers, Flatten(), Dense(10), shape=(9, 9, 1)))


@pytest.mark.parametrize("layers", COMMUTING)
def test_outputs_and_gradients_stay(layers: tuple[Layer, ...]) -> None:
    workload = a_workload(*layers, Flatten(), Dense(10), shape=(9, 9, 1))
    data, before = a_dataset(shape=(9, 9, 1)), lay_out(workload)
    after = pool_first(before)
    assert after != before
    results = []
    for model in (before, after):
        trainer = NumpyBackend().trainer(workload, model, data, options(precision="fp64"))
        trainer.load(initial_weights(before, 1))
        images, labels = data.train.images[:20], data.train.labels[:20]
        results.append({"outputs": trainer.outputs(images), **trainer.gradients(images, labels)})
    for name, value in results[0].items():
        np.testing.assert_allclose(results[1][name], value, rtol=1e-12, atol=1e-15, err_msg=name)


@pytest.mark.parametrize("layers", COMMUTING)
def test_shapes_fit_each_other(layers: tuple[Layer, ...]) -> None:
    model = pool_first(laid_out(layers))
    for one, following in zip(model.layers, model.layers[1:], strict=False):
        assert one.output_shape == following.input_shape


@pytest.mark.parametrize("layers", OTHERS)
def test_other_layers_stay_where_they_are(layers: tuple[Layer, ...]) -> None:
    assert pool_first(laid_out(layers)) == laid_out(layers)


@pytest.mark.parametrize("name", catalog.names())
def test_the_catalogue_keeps_its_cost(name: str) -> None:
    before = lay_out(catalog.find(name))
    after = pool_first(before)
    assert sorted(plan.name for plan in after.layers) == sorted(plan.name for plan in before.layers)
    assert after.weighted_layers == before.weighted_layers
    assert after.training_flops == before.training_flops
