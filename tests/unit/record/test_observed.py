"""Observations of a command."""

import pytest

from trainmark.record.observed import Observed


@pytest.mark.parametrize(
    ("device", "gpu"), [(None, False), ("cpu", False), ("cpu:0", False), ("cuda:0", True)]
)
def test_a_cpu_is_no_gpu_whatever_its_number(device: str | None, gpu: bool) -> None:
    assert Observed("torch", (), 2, 1.0, device=device).on_gpu is gpu
