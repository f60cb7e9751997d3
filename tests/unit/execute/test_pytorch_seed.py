"""A training with ``pytorch_seed`` follows the draws: in its batches, its evaluations and its
replay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trainmark.backends.base import Evaluation, Options
from trainmark.data.load import DataFolder
from trainmark.execute.protocol.worker_commands import Train
from trainmark.execute.worker.main import TrainingState
from trainmark.execute.worker.slices import Slices
from trainmark.workload.catalog import find
from trainmark.workload.model import lay_out
from trainmark.workload.pytorch_draws import Drawn, draw

EXAMPLES = {"train": 1_000, "test": 300}


class Evaluated:
    """A trainer that remembers its evaluations."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, list[int]]] = []

    def evaluate(self, split: str, examples: Any = None) -> Evaluation:
        self.seen.append((split, examples.tolist()))
        return Evaluation(0.0, 0.0)


@pytest.fixture
def trained() -> tuple[TrainingState, Evaluated, Drawn]:
    workload = find("shakespeare-gpt").with_schedule(
        epochs=2, steps=8, steps_per_epoch=5, pytorch_seed=1
    )
    drawn = draw(workload, lay_out(workload), **EXAMPLES)
    assert drawn is not None
    options = Options("fast", "cpu", "fp32", seed=9)
    folder = DataFolder("shakespeare", "/data", 64)
    request = Train("numpy", workload, folder, options, 0.0, True, None, None, None, (None,))
    pacing = Slices(None, lambda _: None, 0.0, lambda own: own)
    trainer = Evaluated()
    return TrainingState(request, trainer, EXAMPLES, pacing, drawn), trainer, drawn  # type: ignore[arg-type]


def test_batches(trained: tuple[TrainingState, Evaluated, Drawn]) -> None:
    state, _, drawn = trained
    plans = list(state.plans())
    assert [plan.sizes for plan in plans] == [(12,) * 5, (12,) * 3]
    assert drawn.batches.shape == (8, 12)
    assert np.array_equal(
        np.concatenate([plan.order for plan in plans if plan.order is not None]),
        drawn.batches.ravel(),
    )


def test_evaluations(trained: tuple[TrainingState, Evaluated, Drawn]) -> None:
    state, trainer, drawn = trained
    assert drawn.samples.shape == (3, 2, 20 * 12)
    assert (drawn.samples[:, 0] >= 300).any()
    assert drawn.samples[:, 1].max() < 300
    for index in (-1, 0, 1):  # -1 is before the first step
        state.evaluate("test", index)
        state.evaluate("train", index)
    expected = [
        ("test" if split else "train", drawn.samples[number, split].tolist())
        for number in range(3)
        for split in (1, 0)
    ]
    assert trainer.seen == expected
