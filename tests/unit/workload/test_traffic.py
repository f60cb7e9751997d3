"""The number of bytes that a step must move, compared with the specification of the workloads."""

from __future__ import annotations

import pytest

from trainmark.workload import catalog, traffic
from trainmark.workload.model import lay_out


@pytest.mark.parametrize(
    ("name", "batch", "megabytes"),
    [
        ("mnist-mlp32", 60_000, 188.8),
        ("mnist-mlp128", 100, 2.06),
        ("mnist-cnn", 200, 0.98),
        ("mnist-mlp512", 128, 11.1),
        ("cifar10-cnn", 128, 9.4),
    ],
)
def test_compulsory_traffic(name, batch, megabytes):
    workload = catalog.find(name)
    assert traffic.compulsory(lay_out(workload), workload.optimizer, batch) / 1e6 == pytest.approx(
        megabytes, rel=0.01
    )
