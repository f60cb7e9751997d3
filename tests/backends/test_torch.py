"""What only the PyTorch backend has: 16-bit steps and its switches. All else is in ``test_conformance.py``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trainmark.backends.base import EpochPlan, Options
from trainmark.data.dataset import Dataset, Split
from trainmark.workload import catalog
from trainmark.workload.model import initial_weights, lay_out
from trainmark.workload.spec import Workload

torch = pytest.importorskip("torch", reason="torch is not installed")

from trainmark.backends.torch.backend import TorchBackend  # noqa: E402

BOTH = pytest.mark.parametrize("style", ["idiomatic", "fast"])


def numbered(shape: tuple[int, int, int], examples: int = 230) -> Dataset:
    """Each image is filled with its own index, so that a batch tells which examples it holds."""
    images = np.zeros((examples, *shape), dtype=np.uint8)
    images += np.arange(examples, dtype=np.uint8)[:, None, None, None]
    labels = (np.arange(examples) % 10).astype(np.uint8)
    return Dataset("numbered", Split(images, labels), Split(images.copy(), labels.copy()), "", True)


def trainer(workload: Workload, data: Dataset, style: str, precision: str = "fp32") -> Any:
    options = Options(style, "cpu", precision, seed=1)  # type: ignore[arg-type]
    made = TorchBackend().trainer(workload, lay_out(workload), data, options)
    made.load(initial_weights(lay_out(workload), seed=1))
    return made


@BOTH
def test_a_16_bit_step_learns(style: str) -> None:
    workload = catalog.find("mnist-mlp128")
    made = trainer(workload, numbered((28, 28, 1)), style, "bf16")
    made.begin_epoch(EpochPlan((100, 100), np.arange(200)))
    losses = made.read(made.train(2, lambda: None)).losses
    assert np.isfinite(losses).all()
    assert made._parameters[0].dtype == torch.float32


def test_ieee_single_precision_is_asked_for() -> None:
    torch.set_float32_matmul_precision("high")
    settings = trainer(catalog.find("mnist-mlp128"), numbered((28, 28, 1)), "fast").settings()
    assert settings["float32_matmul_precision"] == "highest"
    assert settings["cudnn_allow_tf32"] is False


@BOTH
def test_loading_again_starts_a_new_optimizer(style: str) -> None:
    """What the continued protocol needs: the same weights twice must give the same losses twice."""
    workload = catalog.find("mnist-mlp32").deterministic()
    made = trainer(workload, numbered((28, 28, 1)), style)
    weights = made.weights()
    plan = EpochPlan((230,) * 3, np.tile(np.arange(230), 3), True)
    made.compile(plan)
    runs = []
    for _ in range(2):
        made.load(weights)
        made.begin_epoch(plan)
        runs.append(made.read(made.train(3, lambda: None)).losses)
    np.testing.assert_array_equal(runs[0], runs[1])
