"""A replayed step is the reference's step: the same examples, prepared in the same way."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.backends.samples import a_dataset, a_text
from tests.unit.workload.samples import a_workload
from trainmark.backends.base import Options
from trainmark.data.dataset import Dataset
from trainmark.execute.protocol.answers import StepInspected
from trainmark.execute.protocol.worker_commands import ReplayTraining
from trainmark.execute.worker.dissect import _plan
from trainmark.execute.worker.order import epoch_plans
from trainmark.execute.worker.replay import replay
from trainmark.record.inspection import StepInspection
from trainmark.workload.layers import (
    BatchNorm,
    Conv2D,
    Dense,
    Flatten,
    PositionEmbedding,
    ReLU,
    Residual,
    TiedHead,
    TokenEmbedding,
)
from trainmark.workload.model import lay_out
from trainmark.workload.optimizers import SGD
from trainmark.workload.pixels import Augmentation, Input
from trainmark.workload.spec import Workload
from trainmark.workload.tokens import Tokens

OPTIONS = Options("idiomatic", "cpu", "fp32", 1)
AUGMENTED = a_workload(input=Input((4, 4, 1), augment=Augmentation(pad=2, flip=True, cutout=2)))


class Loaded:
    """A dataset that needs no folder."""

    def __init__(self, data: Dataset) -> None:
        self.load = lambda: data


def first_step(workload: Workload, data: Dataset) -> StepInspection:
    received: list[Any] = []
    replay(
        ReplayTraining("numpy", workload, Loaded(data), OPTIONS, 3), received.append, lambda: None
    )  # type: ignore[arg-type]
    return next(each for each in received if isinstance(each, StepInspected)).inspection


def test_augmented_images() -> None:
    step, plain = (first_step(each, a_dataset()) for each in (AUGMENTED, AUGMENTED.deterministic()))
    assert step.loss == pytest.approx(step.reference_loss, rel=1e-5)
    assert step.loss != pytest.approx(plain.loss, rel=1e-3)


def test_a_text() -> None:
    input = Tokens(8)
    model = (TokenEmbedding(65, 4), PositionEmbedding(8), TiedHead())
    text = a_workload(input=input, model=model, dataset="shakespeare", optimizer=SGD(10.0))
    step = first_step(text, a_text(40, 20, 8))
    assert step.loss == pytest.approx(step.reference_loss, rel=1e-5)
    assert step.gap is not None
    assert set(step.moved) == {"token-embedding1.table", "position-embedding1.table"}


def test_batch_norm() -> None:
    body = (Conv2D(4, 3, padding="same"), BatchNorm(), ReLU(), Flatten(), Dense(10))
    step = first_step(a_workload(*body), a_dataset())
    assert step.loss == pytest.approx(step.reference_loss, rel=1e-5)


def test_no_branch_of_the_first_layer_has_an_input_gradient() -> None:
    first = Residual((ReLU(), Conv2D(2, 1)), (ReLU(), Conv2D(2, 1)))
    workload = a_workload(first, Flatten(), Dense(10))
    residual, _, dense = lay_out(workload).layers
    assert (residual.input_gradient_macs, dense.input_gradient_macs) == (0, 4 * 4 * 2 * 10)
    step = first_step(workload, a_dataset())
    assert step.loss == pytest.approx(step.reference_loss, rel=1e-5)


def test_a_timed_epoch_is_augmented_as_in_a_run() -> None:
    plan = _plan(AUGMENTED, 100, 5, OPTIONS)
    of_run = next(epoch_plans(AUGMENTED, 100, 1, inject=True))
    assert plan.augmented is not None
    assert of_run.augmented is not None
    assert plan.augmented.tolist() == of_run.augmented[:50].tolist()
    assert _plan(AUGMENTED.without_distortions(), 100, 5, OPTIONS).augmented is None
