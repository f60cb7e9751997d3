"""JAX on a real GPU: the losses of the oracle."""

from __future__ import annotations

import pytest

from tests.backends import test_torch_against_oracle as against_oracle
from tests.gpu.conftest import require
from tests.gpu.losses import bound, losses_on
from tests.slow import slow

pytest.importorskip("jax", reason="jax is not installed")

WORKLOADS = [
    "mnist-mlp32",
    "mnist-mlp128",
    slow("mnist-mlp512"),
    slow("mnist-cnn"),
    slow("cifar10-cnn"),
]


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
@pytest.mark.parametrize("style", ["idiomatic", "fast"])
@pytest.mark.parametrize("name", WORKLOADS)
def test_losses_are_those_of_the_oracle(name: str, style: str, precision: str, device: str) -> None:
    require("jax", device)
    found = losses_on("jax", style, device, precision, name)
    assert against_oracle.apart(found, against_oracle.oracle(name)) < bound(precision, name)
