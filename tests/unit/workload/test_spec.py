from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest

from trainmark.workload import catalog
from trainmark.workload.decode import Misfit
from trainmark.workload.layers import Dense, Flatten, LogSoftmax
from trainmark.workload.losses import NegativeLogLikelihood, TwoStageCrossEntropy
from trainmark.workload.optimizers import SGD, WeightAverage
from trainmark.workload.pixels import Input
from trainmark.workload.schedule import Batches, Metrics, Schedule
from trainmark.workload.spec import Workload

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
def test_descriptions_of_a_workload_change_no_fingerprint(change: dict[str, Any]) -> None:
    changed = dataclasses.replace(BASE, **change)
    assert changed != BASE
    assert changed.step_fingerprint == BASE.step_fingerprint
    assert changed.schedule_fingerprint == BASE.schedule_fingerprint


@dataclass(frozen=True)
class DenseOfTomorrow(Dense):
    groups: int = 1


@dataclass(frozen=True)
class ScheduleOfTomorrow(Schedule):
    warm_up: int | None = None


@dataclass(frozen=True)
class WorkloadOfTomorrow(Workload):
    clip: float | None = None


def of_tomorrow(
    workload: Workload, clip: float | None = None, groups: int = 1, warm_up: int | None = None
) -> Workload:
    """``workload`` as a later trainmark has it, with a new optional field in three classes."""
    fields = vars(workload) | {
        "schedule": ScheduleOfTomorrow(**vars(workload.schedule), warm_up=warm_up),
        "model": tuple(
            DenseOfTomorrow(**vars(layer), groups=groups) if isinstance(layer, Dense) else layer
            for layer in workload.model
        ),
    }
    return WorkloadOfTomorrow(**fields, clip=clip)


@pytest.mark.parametrize("name", catalog.names())
def test_a_new_optional_field_does_not_change_fingerprints(name: str) -> None:
    today = catalog.find(name)
    later = of_tomorrow(today)
    assert later.to_data() != today.to_data()
    assert later.step_fingerprint == today.step_fingerprint
    assert later.schedule_fingerprint == today.schedule_fingerprint


def test_a_new_field_that_is_used_changes_its_fingerprint() -> None:
    plain = of_tomorrow(BASE)
    for changed in (of_tomorrow(BASE, clip=1.0), of_tomorrow(BASE, groups=2)):
        assert changed.step_fingerprint != plain.step_fingerprint
        assert changed.schedule_fingerprint == plain.schedule_fingerprint
    warmed = of_tomorrow(BASE, warm_up=5)
    assert warmed.step_fingerprint == plain.step_fingerprint
    assert warmed.schedule_fingerprint != plain.schedule_fingerprint


@pytest.mark.parametrize(
    ("name", "step", "schedule"),
    [
        ("mnist-mlp32", "a71ed34ef9c45556", "2f748fecc08b26f5"),
        ("mnist-cnn", "a477817da9cc2c6e", "0c1b6f3c01aec4ac"),
        ("mnist-mlp512", "cafddca02e41fbbb", "0c1b6f3c01aec4ac"),
        ("cifar10-cnn", "341ee2afc7fd53ba", "57ef3239e95da29f"),
        ("shakespeare-gpt", "8fcf399744659a1d", "bcdecae25ab3371a"),
        ("cifar10-resnet9", "c6489cf37e205ce4", "0c1b6f3c01aec4ac"),
    ],
)
def test_fingerprints_stay_as_records_hold_them(name: str, step: str, schedule: str) -> None:
    """A changed default of a field changes the meaning of old fingerprints: give the field a new
    name instead."""
    workload = catalog.find(name)
    assert (workload.step_fingerprint, workload.schedule_fingerprint) == (step, schedule)


def test_the_workloads_of_the_catalogue_are_distinguished() -> None:
    assert len({catalog.find(name).step_fingerprint for name in catalog.names()}) == len(
        catalog.names()
    )


def test_the_fingerprint_depends_on_the_kind_of_each_layer() -> None:
    cnn = catalog.find("mnist-cnn")
    single = tuple(
        dataclasses.replace(layer, kind="dropout") if layer.kind == "channel-dropout" else layer
        for layer in cnn.model
    )
    assert dataclasses.replace(cnn, model=single).step_fingerprint != cnn.step_fingerprint


def test_the_last_layer_and_the_loss_belong_together() -> None:
    a_workload(Flatten(), Dense(10), LogSoftmax(), loss=NegativeLogLikelihood())
    with pytest.raises(Misfit, match="a last layer 'log-softmax' for the loss 'nll'"):
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
