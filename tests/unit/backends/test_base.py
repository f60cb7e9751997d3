from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.workload.samples import a_workload
from trainmark.backends.base import (
    Capabilities,
    Device,
    Options,
    device_of_rank,
    is_numbered,
    kinds_of,
    require_memory,
    require_support,
)
from trainmark.errors import AbsentDevice, Unsupported
from trainmark.workload import catalog
from trainmark.workload.schedule import Batches

CPU = Device("cpu", None, "cpu")
GPU = Device("cuda:0", None, "accelerator", precisions=("fp32", "bf16"))
KINDS = frozenset(("flatten", "dense", "softmax-cross-entropy", "sgd"))
CAN = Capabilities("some", "1.0", ("fast",), (CPU, GPU), KINDS)


def asked(**changes: Any) -> Options:
    return Options(**({"style": "fast", "device": "cpu", "precision": "fp32", "seed": 1} | changes))


def test_kinds_of_a_workload() -> None:
    assert kinds_of(a_workload()) == ("flatten", "dense", "softmax-cross-entropy", "sgd")


def test_the_device_that_was_asked_for_is_returned() -> None:
    assert require_support(CAN, a_workload(), asked()) is CPU
    assert (
        require_support(
            CAN, a_workload(), asked(device="cuda:0", precision="bf16", memory_fraction=0.5)
        )
        is GPU
    )


def test_each_rank_has_its_own_device_if_devices_are_numbered() -> None:
    assert [device_of_rank(each, 3) for each in ("cuda:0", "xpu:0", "cpu", "mps")] == [
        "cuda:3", "xpu:3", "cpu", "mps",
    ]  # fmt: skip
    assert [is_numbered(each) for each in ("cuda:0", "xpu:12", "cpu", "mps", "cuda")] == [
        True, True, False, False, False,
    ]  # fmt: skip


def test_a_device_that_is_not_seen() -> None:
    with pytest.raises(
        AbsentDevice, match=r"some does not see the device 'cuda:1': expected one of cpu, cuda:0\."
    ):
        require_support(CAN, a_workload(), asked(device="cuda:1"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"style": "idiomatic"},
            "some on cpu does not have the style 'idiomatic': expected one of fast",
        ),
        (
            {"precision": "bf16"},
            "some on cpu does not have the precision 'bf16': expected one of fp32",
        ),
        (
            {"device": "cuda:0", "precision": "fp16"},
            "some on cuda:0 does not have the precision 'fp16': expected one of fp32, bf16",
        ),
        (
            {"memory_fraction": 0.5},
            "--memory-fraction has no meaning on a CPU: expected an accelerator",
        ),
    ],
)
def test_what_the_backend_cannot_do_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        require_support(CAN, a_workload(), asked(**changes))


@pytest.mark.parametrize("missing", sorted(KINDS))
def test_a_layer_loss_or_optimiser_it_does_not_have_is_named(missing: str) -> None:
    can = Capabilities("some", "1.0", ("fast",), (CPU,), KINDS - {missing})
    with pytest.raises(
        Unsupported,
        match=f"does not have the layer, loss or optimiser '{missing}': expected one of",
    ):
        require_support(can, a_workload(), asked())


def test_a_batch_too_large_for_memory_is_refused_with_advice() -> None:
    small = Device("cuda:0", None, "accelerator", 512 << 20)

    def require(batch: int) -> None:
        workload = replace(catalog.find("shakespeare-gpt"), batches=Batches(batch))
        require_memory(workload, small, asked(device="cuda:0"))

    with pytest.raises(
        Unsupported, match=r"at least .* for a batch of 1,000, found 512 MiB"
    ) as caught:
        require(1_000)
    fits = int(str(caught.value).partition("A batch of at most ")[2].split()[0])
    require(fits)
    with pytest.raises(Unsupported, match="can't hold a step"):
        require(fits + 1)
