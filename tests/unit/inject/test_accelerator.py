"""What the observer finds out about PyTorch's accelerator: old and new versions, each kind,
none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trainmark.inject import accelerator


class Module:
    """PyTorch's module of one kind of device."""

    def __init__(self, *, available: bool = True, capability: tuple[int, int] = (9, 0)) -> None:
        self.is_available = lambda: available
        self.get_device_capability = lambda: capability
        self.waited = 0

    def synchronize(self) -> None:
        self.waited += 1

    def max_memory_allocated(self, device: Any) -> int:
        return 1000 + device.index


def pytorch(kind: str | None = None, *, new: bool = True, **of_device: Any) -> Any:
    """A PyTorch that was built for this kind of accelerator."""
    made = SimpleNamespace(
        cpu=SimpleNamespace(), version=SimpleNamespace(cuda=None, hip=None, xpu=None)
    )
    if kind is not None:
        setattr(made, kind, Module(**of_device))
        setattr(made.version, kind, "1.0")
    if new:
        found = None if kind is None else SimpleNamespace(type=kind)
        made.accelerator = SimpleNamespace(current_accelerator=lambda: found)
    return made


@pytest.mark.parametrize("new", [True, False], ids=["new", "before torch.accelerator"])
def test_the_kind_of_accelerator_is_found(new: bool) -> None:
    for kind in ("cuda", "xpu"):
        assert accelerator.kind(pytorch(kind, new=new)) == kind
        assert accelerator.kind(pytorch(kind, new=new, available=False)) is None
    assert accelerator.kind(pytorch(new=new)) is None
    assert accelerator.kind(pytorch("mps", new=new)) is None


def test_synchronize_waits_for_the_accelerator_that_is_present() -> None:
    for kind in ("cuda", "xpu"):
        torch = pytorch(kind)
        accelerator.synchronize(torch)
        assert getattr(torch, kind).waited == 1
    accelerator.synchronize(pytorch())


def test_the_peak_is_that_of_the_device_or_unknown() -> None:
    gpu = SimpleNamespace(type="cuda", index=2)
    assert accelerator.peak_bytes(pytorch("cuda"), gpu) == 1002
    assert accelerator.peak_bytes(pytorch("cuda"), SimpleNamespace(type="cpu", index=None)) is None
    without = pytorch()
    without.mps = SimpleNamespace()
    assert accelerator.peak_bytes(without, SimpleNamespace(type="mps", index=None)) is None


def test_what_only_some_gpus_can_do() -> None:
    assert accelerator.has_tf32(pytorch("cuda", capability=(8, 0)))
    assert not accelerator.has_tf32(pytorch("cuda", capability=(7, 5)))
    assert not accelerator.has_tf32(pytorch("xpu"))
    assert accelerator.has_graphs(pytorch("cuda"))
    assert not accelerator.has_graphs(pytorch("xpu"))
    assert accelerator.copies(pytorch("xpu")) == ("to", "cuda")
    assert accelerator.copies(pytorch()) == ()


def test_the_installed_pytorch_answers() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    found = accelerator.kind(torch)
    assert found in (None, "cuda", "xpu")
    accelerator.synchronize(torch)
    assert accelerator.peak_bytes(torch, torch.device("cpu")) is None
    assert accelerator.has_graphs(torch) == (found == "cuda")
