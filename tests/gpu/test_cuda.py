"""On a real CUDA device: the losses of the oracle, captured graphs included."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends import test_torch_against_oracle as against_oracle
from trainmark.backends import registry
from trainmark.backends.base import EpochPlan, Options
from trainmark.workload.model import initial_weights, lay_out

torch = pytest.importorskip("torch", reason="torch is not installed")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device"),
]


@pytest.mark.parametrize("style", ["idiomatic", "fast"])
@pytest.mark.parametrize(
    "name", ["mnist-mlp32", "mnist-mlp128", "mnist-mlp512", "mnist-cnn", "cifar10-cnn"]
)
def test_float64_losses_are_those_of_the_oracle(name: str, style: str) -> None:
    workload = against_oracle.workload(name)
    model = lay_out(workload)
    data = against_oracle.data(name)
    trainer = registry.load("torch").trainer(
        workload, model, data, Options(style, "cuda:0", "fp64", seed=0)
    )  # type: ignore[arg-type]
    trainer.load(initial_weights(model, seed=3))
    plan = against_oracle.plan(workload, len(data.train))
    trainer.compile(plan)
    trainer.begin_epoch(plan)
    results = trainer.train(against_oracle.STEPS, lambda: None)
    trainer.synchronize()
    found = trainer.read(results).losses
    # its sums have another order each time
    assert against_oracle.apart(found, against_oracle.oracle(name)) < 1e-8


@pytest.mark.parametrize("style", ["idiomatic", "fast"])
def test_the_loss_of_a_16_bit_step_is_not_rounded(style: str) -> None:
    workload = against_oracle.workload("mnist-mlp128")
    model = lay_out(workload)
    data = against_oracle.data("mnist-mlp128")
    trainer = registry.load("torch").trainer(
        workload, model, data, Options(style, "cuda:0", "bf16", seed=0)
    )  # type: ignore[arg-type]
    trainer.load(
        {name: np.zeros_like(value) for name, value in initial_weights(model, seed=3).items()}
    )
    plan = against_oracle.plan(workload, len(data.train))
    trainer.compile(plan)
    trainer.begin_epoch(plan)
    losses = trainer.read(trainer.train(1, lambda: None)).losses
    np.testing.assert_allclose(losses, np.log(10), rtol=1e-6)  # in bf16, it would be 2.296875


def test_a_captured_step_of_every_batch_size() -> None:
    """mnist-mlp512 ends an epoch with a smaller batch: two graphs, one network, and the eager
    losses."""
    workload = against_oracle.workload("mnist-mlp512")
    model = lay_out(workload)
    data = against_oracle.data("mnist-mlp512")
    sizes = workload.batches.sizes(len(data.train))
    plan = EpochPlan(sizes, np.random.default_rng(0).permutation(len(data.train)))
    losses = {}
    for device in ("cpu", "cuda:0"):
        trainer = registry.load("torch").trainer(
            workload, model, data, Options("fast", device, "fp64", seed=0)
        )
        trainer.load(initial_weights(model, seed=3))
        assert trainer.compile(plan) == (device != "cpu")
        for _ in range(2):
            trainer.begin_epoch(plan)
            losses[device] = trainer.read(trainer.train(len(sizes), lambda: None)).losses
        if device != "cpu":
            assert trainer.settings()["cuda_graphs"] == 2
    assert against_oracle.apart(losses["cuda:0"], losses["cpu"]) < 1e-9
