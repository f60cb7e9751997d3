"""A training that goes wrong is repeated and inspected, and the planted cause is named."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from tests.slow import slow
from trainmark.analysis.diagnosis import Diagnosis, diagnose
from trainmark.backends.base import Options
from trainmark.data.locate import Located
from trainmark.execute.protocol.worker_commands import ReplayTraining
from trainmark.execute.worker.replay import replay
from trainmark.study.explain.failure import replay_of
from trainmark.workload import catalog
from trainmark.workload.initializers import Uniform
from trainmark.workload.layers import Dense
from trainmark.workload.losses import TwoStageCrossEntropy
from trainmark.workload.spec import Workload

pytest.importorskip("torch", reason="torch is not installed")

from trainmark.backends.torch.backend import TorchBackend


class Spoiled(TorchBackend):
    """PyTorch with changed trainers."""

    def __init__(self, spoil: Callable[[Any], None]) -> None:
        self._spoil = spoil

    def trainer(self, *arguments: Any) -> Any:
        made = super().trainer(*arguments)
        self._spoil(made)
        return made


def nan_pixel(made: Any) -> None:
    made._images.view(len(made._images), -1)[123, 300] = float("nan")


def label_10(made: Any) -> None:
    made._labels[7] = 10


def frozen(made: Any) -> None:
    group = made._optimizer.param_groups[0]
    group["params"] = group["params"][2:]


def zeroed_gradient(made: Any) -> None:
    differentiate = made._differentiate

    def without_the_first(x: Any, y: Any) -> Any:
        found = differentiate(x, y)
        made._parameters[0].grad.zero_()
        return found

    made._differentiate = without_the_first


def half_precision(made: Any) -> None:
    """Rounds the layers' outputs to fp16, as a GPU's half precision would."""
    made._chain = None  # this goes through autograd, which calls the layers
    for module in made._network:
        module.register_forward_hook(lambda _module, _inputs, output: output.half().float())


def nothing(_: Any) -> None:
    """A healthy training."""


def diagnosed(
    drawn: Located,
    spoil: Callable[[Any], None] = nothing,
    workload: Workload | None = None,
    precision: str = "fp32",
    steps: int = 60,
) -> Diagnosis:
    """Return the result of the worker's messages."""
    # A workload without weight decay, since that moves weights which nothing else does.
    workload = (workload or catalog.find("mnist-mlp512")).with_schedule(
        steps=steps, epochs=1, shuffle="never"
    )
    received: list[Any] = []
    options = Options("fast", "cpu", "fp32", 1)
    request = ReplayTraining("spoiled", workload, drawn.folder, options, steps)
    stopped = None
    try:
        replay(request, received.append, lambda: None, lambda _: Spoiled(spoil))
    except Exception as error:  # noqa: BLE001  (as the worker does)
        stopped = f"{type(error).__name__}: {error}"
    return diagnose(replay_of(received, workload, precision, stopped))


@pytest.mark.parametrize(
    ("spoil", "cause", "where"),
    [
        (label_10, "labels-out-of-range", "labels"),
        (frozen, "nothing-is-training", "update dense1.kernel"),
        slow(zeroed_gradient, "nothing-is-training", "update dense1.kernel"),
        (nothing, "not-found", None),
    ],
)
def test_what_was_planted_is_named(
    drawn: Located, spoil: Callable[[Any], None], cause: str, where: str | None
) -> None:
    found = diagnosed(drawn, spoil)
    assert (found.cause, found.where) == (cause, where)


def test_the_example_with_the_bad_pixel_is_named(drawn: Located) -> None:
    found = diagnosed(drawn, nan_pixel)
    assert (found.cause, found.where) == ("nan-in-data", "input")
    assert "example 123 alone" in found.evidence[0]


def test_a_learning_rate_100_times_too_high(drawn: Located) -> None:
    workload = catalog.find("mnist-mlp512")
    optimizer = dataclasses.replace(
        workload.optimizer, learning_rate=100 * workload.optimizer.learning_rate
    )
    assert (
        diagnosed(drawn, workload=dataclasses.replace(workload, optimizer=optimizer)).cause
        == "learning-rate"
    )


def test_half_precision_that_overflows(drawn: Located) -> None:
    workload = catalog.find("mnist-mlp128")
    wild = tuple(
        dataclasses.replace(layer, kernel=Uniform(4.0)) if isinstance(layer, Dense) else layer
        for layer in workload.model
    )
    bright = dataclasses.replace(workload.input, divide_by=0.01)
    found = diagnosed(
        drawn,
        half_precision,
        dataclasses.replace(workload, model=wild, input=bright),
        precision="fp16",
    )
    assert found.cause == "precision-overflow"
    assert found.where is not None
    assert found.where.startswith("activation")


def test_a_softmax_that_underflows(drawn: Located) -> None:
    """The Flux workload's loss in two stages, with logits so far apart that the true class's
    probability is subnormal."""
    workload = dataclasses.replace(catalog.find("mnist-mlp512"), loss=TwoStageCrossEntropy())
    wild = tuple(
        dataclasses.replace(layer, kernel=Uniform(3.0)) if isinstance(layer, Dense) else layer
        for layer in workload.model
    )
    found = diagnosed(drawn, workload=dataclasses.replace(workload, model=wild), steps=2)
    assert found.cause == "softmax-underflow"
    assert found.where is not None
