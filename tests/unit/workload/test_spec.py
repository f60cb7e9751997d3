from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from trainmark.workload import catalog
from trainmark.workload.decode import Misfit
from trainmark.workload.layers import Dense, Flatten, LogSoftmax
from trainmark.workload.losses import NegativeLogLikelihood, TwoStageCrossEntropy
from trainmark.workload.optimizers import SGD, WeightAverage
from trainmark.workload.pixels import Input
from trainmark.workload.schedule import Batches, Metrics, Schedule

from .samples import a_workload

BASE = a_workload()


@pytest.mark.parametrize(
    "change",
    [
        {"optimizer": SGD(0.2)},
        {"model": (Flatten(), Dense(11))},
        {"loss": TwoStageCrossEntropy()},
        {"input": Input((4, 4, 1), divide_by=256)},
        {"batches": Batches(11)},
        {"weight_average": WeightAverage(0.9)},
        {"metrics": Metrics(loss_includes_l2=True)},
    ],
)
def test_what_a_step_computes_changes_the_step_fingerprint_only(change: dict[str, Any]) -> None:
    changed = dataclasses.replace(BASE, **change)
    assert changed.step_fingerprint != BASE.step_fingerprint
    assert changed.schedule_fingerprint == BASE.schedule_fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"schedule": Schedule(epochs=3)},
        {"schedule": Schedule(epochs=2, steps=5)},
        {"schedule": Schedule(epochs=2, shuffle="once")},
        {"schedule": Schedule(epochs=2, protocol="continued")},
        {"schedule": Schedule(epochs=2, evaluate="end")},
        {"metrics": Metrics(train="exact")},
    ],
)
def test_how_many_and_when_changes_the_schedule_fingerprint_only(change: dict[str, Any]) -> None:
    changed = dataclasses.replace(BASE, **change)
    assert changed.step_fingerprint == BASE.step_fingerprint
    assert changed.schedule_fingerprint != BASE.schedule_fingerprint


@pytest.mark.parametrize(
    "change",
    [{"title": "other"}, {"name": "other"}, {"published": catalog.find("mnist-mlp32").published}],
)
def test_what_is_only_said_about_a_workload_changes_neither(change: dict[str, Any]) -> None:
    changed = dataclasses.replace(BASE, **change)
    assert changed != BASE
    assert changed.step_fingerprint == BASE.step_fingerprint
    assert changed.schedule_fingerprint == BASE.schedule_fingerprint


def test_the_workloads_of_the_catalogue_are_told_apart() -> None:
    assert len({catalog.find(name).step_fingerprint for name in catalog.names()}) == len(catalog.names())


def test_a_layers_kind_counts_even_where_its_numbers_are_the_same() -> None:
    cnn = catalog.find("mnist-cnn")
    single = tuple(
        dataclasses.replace(layer, kind="dropout") if layer.kind == "channel-dropout" else layer for layer in cnn.model
    )
    assert dataclasses.replace(cnn, model=single).step_fingerprint != cnn.step_fingerprint


def test_the_last_layer_and_the_loss_belong_together() -> None:
    a_workload(Flatten(), Dense(10), LogSoftmax(), loss=NegativeLogLikelihood())
    with pytest.raises(Misfit, match="a last layer 'log-softmax' before the loss 'nll'"):
        a_workload(Flatten(), Dense(10), loss=NegativeLogLikelihood())
    with pytest.raises(Misfit, match="the loss 'nll' after a last layer 'log-softmax'"):
        a_workload(Flatten(), Dense(10), LogSoftmax())


def test_a_network_has_a_layer() -> None:
    with pytest.raises(Misfit, match="at least one layer"):
        a_workload(model=())


def test_deterministic_takes_dropout_and_distortions_away() -> None:
    kinds = [layer.kind for layer in catalog.find("mnist-cnn").deterministic().model]
    assert kinds == [
        *("conv2d", "max-pool", "relu", "conv2d", "max-pool", "relu", "flatten"),
        *("dense", "relu", "dense", "log-softmax"),
    ]
    assert catalog.find("cifar10-cnn").deterministic().input.distortions is None


def test_scheduled_as_a_published_run() -> None:
    flux = catalog.find("mnist-mlp32")
    assert flux.published is not None
    first = flux.scheduled_as(flux.published.runs[0]).schedule
    assert (first.epochs, first.steps, first.protocol) == (10, None, "continued")
    cifar = catalog.find("cifar10-cnn")
    assert cifar.published is not None
    log = cifar.scheduled_as(cifar.published.runs[0]).schedule
    assert (log.steps, log.steps_per_epoch, log.protocol) == (290, None, "fresh")
