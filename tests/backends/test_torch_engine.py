"""What PyTorch's backends find out about devices: each kind of accelerator, broken ones, none. No
GPU is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trainmark.errors import AbsentDevice

torch = pytest.importorskip("torch", reason="torch is not installed")

from trainmark.backends.base import Options, require_support  # noqa: E402
from trainmark.backends.engines import torch as engines  # noqa: E402
from trainmark.backends.torch.backend import TorchBackend  # noqa: E402
from trainmark.workload import catalog  # noqa: E402


class Module:
    """PyTorch's module of one kind of accelerator, with some devices; those in ``broken`` don't
    answer."""

    def __init__(self, count: int, broken: tuple[int, ...] = ()) -> None:
        self.count = count
        self.broken = broken
        self.calls: list[Any] = []

    def is_available(self) -> bool:
        return self.count > 0

    def device_count(self) -> int:
        return self.count

    def get_device_properties(self, index: int) -> Any:
        if index in self.broken:
            raise RuntimeError("CUDA error: unknown error\nmore")
        return SimpleNamespace(name=f"GPU {index}", major=9, minor=0, total_memory=80 << 30)

    def synchronize(self, *device: Any) -> None:
        self.calls.append(("synchronize", *map(str, device)))

    def set_device(self, device: Any) -> None:
        self.calls.append(("set_device", str(device)))

    def max_memory_allocated(self, device: Any) -> int:
        return 1000 + device.index


@pytest.fixture
def built_for(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make PyTorch look like a build for one kind of accelerator."""

    def build(kind: str, module: Any, *, new: bool = True) -> None:
        if new:
            monkeypatch.setattr(
                torch.accelerator, "current_accelerator", lambda: SimpleNamespace(type=kind)
            )
        else:
            monkeypatch.delattr(torch, "accelerator")
        nothing = Module(0)
        monkeypatch.setattr(
            torch,
            "get_device_module",
            lambda of: module if getattr(of, "type", of) == kind else nothing,
        )

    return build


def seen() -> dict[str, bool]:
    """The devices of the backend, and whether each kind was tested."""
    return {device.id: device.tested for device in TorchBackend().capabilities().devices}


@pytest.mark.parametrize("new", [True, False], ids=["new", "before torch.accelerator"])
def test_every_device_of_the_accelerator_is_seen(built_for: Any, new: bool) -> None:
    built_for("cuda", Module(2), new=new)
    assert seen() == {"cpu": True, "cuda:0": True, "cuda:1": True}


def test_untested_kinds_of_devices_are_marked(
    built_for: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    built_for("xpu", Module(1))
    assert seen() == {"cpu": True, "xpu:0": False}
    built_for("cuda", Module(1))
    monkeypatch.setattr(torch.version, "hip", "6.4")
    assert seen() == {"cpu": True, "cuda:0": False}
    built_for("mps", Module(1))
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert seen() == {"cpu": True, "mps": False}


def test_a_driver_without_devices_leaves_the_cpu(built_for: Any) -> None:
    built_for("cuda", Module(0))
    assert seen() == {"cpu": True}
    with pytest.raises(
        AbsentDevice, match=r"torch does not see the device 'cuda:0': expected one of cpu"
    ):
        require_support(
            TorchBackend().capabilities(),
            catalog.find("mnist-mlp32"),
            Options("fast", "cuda:0", "fp32", seed=0),
        )


def test_a_device_that_does_not_answer_leaves_the_others(built_for: Any) -> None:
    built_for("cuda", Module(3, broken=(1,)))
    with pytest.warns(
        RuntimeWarning, match=r"cuda:1 is left out: CUDA error: unknown error\. `trainmark doctor`"
    ):
        assert set(seen()) == {"cpu", "cuda:0", "cuda:2"}


def test_synchronize_waits_for_the_device(built_for: Any) -> None:
    module = Module(2)
    for kind, device in (("cuda", "cuda:1"), ("xpu", "xpu:0"), ("mps", "mps")):
        built_for(kind, module)
        engines.synchronize(torch.device(device))
        engines.make_current(torch.device(device))
    engines.synchronize(torch.device("cpu"))
    engines.make_current(torch.device("cpu"))
    assert module.calls == [
        ("synchronize", "cuda:1"),
        ("set_device", "cuda:1"),
        ("synchronize", "xpu:0"),
        ("set_device", "xpu:0"),
        ("synchronize",),
    ]


def test_peak_memory_is_that_of_the_device_or_unknown(built_for: Any) -> None:
    built_for("xpu", Module(3))
    assert engines.peak_bytes(torch.device("xpu:2")) == 1002
    assert engines.peak_bytes(torch.device("cpu")) is None
    built_for("mps", SimpleNamespace())
    assert engines.peak_bytes(torch.device("mps")) is None


def test_ranks_have_separate_accelerators_and_share_the_cpu() -> None:
    assert engines.local_device("cuda", 3) == torch.device("cuda:3")
    assert engines.local_device("cpu", 3) == torch.device("cpu")
    assert [engines.collectives(torch.device(kind)) for kind in ("cuda", "xpu", "cpu")] == [
        "nccl",
        "xccl",
        "gloo",
    ]
    assert engines.indices(torch.device("cuda:3")) == [3]
    assert engines.indices(torch.device("cpu")) is None


def test_random_numbers_continue_as_before() -> None:
    cpu = torch.device("cpu")
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with engines.random_state_kept(cpu):
        torch.rand(10)
    assert torch.equal(torch.rand(2), expected)


def test_work_on_a_side_stream_is_also_done_on_a_cpu() -> None:
    with engines.side_stream(torch.device("cpu")):
        found = torch.ones(2).sum()
    assert found == 2
    assert not engines.captures(torch.device("cpu"))
