"""The candidates for `fast` do the same work; the planted sides differ by exactly the planted
amount."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gpu import subjects  # noqa: E402
from gpu.items.best_loop import OURS as NAME_ON_THE_PAGE  # noqa: E402
from gpu.planted import EVERY, Repeating, Stretched  # noqa: E402
from gpu.styles.candidates import OURS, Candidate, candidates  # noqa: E402
from gpu.styles.networks import nanogpt_sizes  # noqa: E402
from gpu.styles.step import CandidateTrainer  # noqa: E402
from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: E402

from tests.slow import slow  # noqa: E402
from trainmark.backends.base import EpochPlan, Options  # noqa: E402
from trainmark.backends.torch.backend import TorchBackend  # noqa: E402

NANOGPT = """
import torch
from dataclasses import dataclass
from torch import nn


@dataclass
class GPTConfig:
    block_size: int
    vocab_size: int
    n_layer: int
    n_head: int
    n_embd: int
    dropout: float
    bias: bool


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.table = nn.Embedding(config.vocab_size, config.n_embd)
        self.head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, x, y):
        logits = self.head(self.table(x))
        return logits, nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
"""


def no_tick() -> None:
    """Do nothing: progress is not shown."""


def losses_of(trainer: CandidateTrainer, batch: int, steps: int) -> list[float]:
    plan = EpochPlan((batch,) * steps, None)
    trainer.compile(plan)
    trainer.begin_epoch(plan)
    return [float(trainer.read(trainer.train(1, no_tick)).losses[-1]) for _ in range(steps)]


def test_names_are_those_that_the_page_looks_for() -> None:
    assert OURS == NAME_ON_THE_PAGE
    for images, nanogpt in itertools.product((True, False), repeat=2):
        names = [each.name for each in candidates(images=images, nanogpt=nanogpt)]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", ["shakespeare-gpt-10m", "cifar10-resnet9", "resnet50"])
def test_a_candidate_trains(name: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMARK_DATA", str(data_dir))
    subject = subjects.load(name, quick=True)
    layout = None if subject.workload.is_text else True
    trainer = CandidateTrainer(subject, Candidate("eager", channels_last=layout), "cpu", None)
    # the images are few, and their rate is that of large batches
    steps = 60 if subject.workload.is_text else 3
    losses = losses_of(trainer, subject.workload.batches.size, steps)  # type: ignore[arg-type]
    assert np.isfinite(losses).all()
    if subject.workload.is_text:
        assert np.mean(losses[-10:]) < np.mean(losses[:10])


@pytest.mark.filterwarnings("default")  # the compiler has its own
@pytest.mark.parametrize(
    "candidate",
    ["eager in a graph", slow("compiled"), slow("compiled with its optimiser, in a graph")],
)
def test_candidates_compute_the_same_losses(candidate: str) -> None:
    subject = subjects.load("gpt2-124m", quick=True)
    found = {each.name: each for each in candidates(images=False, nanogpt=False)}
    losses = [
        losses_of(CandidateTrainer(subject, found[name], "cpu", None), 2, 5)
        for name in ("eager", candidate)
    ]
    np.testing.assert_allclose(*losses, rtol=5e-2)  # bf16, rounded in different places


def test_the_model_of_a_nanogpt_checkout_is_trained(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(NANOGPT)
    subject = subjects.load("gpt2-124m", quick=True)
    assert nanogpt_sizes(subject) == {
        "block_size": 16,
        "vocab_size": 50304,
        "n_layer": 1,
        "n_head": 1,
        "n_embd": 48,
        "dropout": 0.0,
        "bias": False,
    }
    trainer = CandidateTrainer(subject, Candidate("nanoGPT", nanogpt=True), "cpu", tmp_path)
    assert np.isfinite(losses_of(trainer, 2, 3)).all()


@pytest.mark.parametrize(
    ("backend", "updates"), [(Stretched, 3 * EVERY), (Repeating, 3 * EVERY + 3)]
)
def test_planted_sides_differ_by_one_step_in_20(backend: type[Stretched], updates: int) -> None:
    subject = subjects.load("mnist-mlp128", quick=True)
    plan = EpochPlan((4,) * 3 * EVERY, np.arange(12 * EVERY))
    counted = []
    losses = []
    hook = register_optimizer_step_post_hook(lambda *_: counted.append(1))
    try:
        for made in (backend(), TorchBackend()):
            counted.clear()
            trainer = made.trainer(
                subject.workload,
                subject.model,
                subject.data,
                Options("fast", "cpu", "fp32", seed=1),
            )
            trainer.load(subject.weights())
            trainer.begin_epoch(plan)
            results = [trainer.train(steps, no_tick) for steps in (7, 3 * EVERY - 7)]
            losses.append(np.concatenate([trainer.read(each).losses for each in results]))
            if made.__class__ is backend:
                assert len(counted) == updates
    finally:
        hook.remove()
    assert len(losses[0]) == 3 * EVERY
    same = losses[0] == losses[1]
    assert same[: EVERY - 1].all()
    assert same.all() == (backend is Stretched)
