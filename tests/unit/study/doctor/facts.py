"""Machines as doctor sees them: a good one with a GPU, and what others differ from it in."""

from __future__ import annotations

import dataclasses
from typing import Any

from trainmark.backends.examination import EXPECTED, DeviceProduct, Examination
from trainmark.execute.parent.examine import Framework
from trainmark.measure.host import Host, Limits
from trainmark.measure.vendor import Driver, Gpu, Installed
from trainmark.study.doctor import Facts, diagnose
from trainmark.study.doctor.check import Check

GIB = 2**30

HOST = Host(
    usable_cores=16,
    governors=("performance",),
    limits=Limits(float("inf"), 8.0 * 2**20),
    shared_memory_bytes=64 * GIB,
    memory_available_bytes=100 * GIB,
    swap_bytes=(0, 0),
    clock_resolution_seconds=5e-8,
    gpus_on_bus={"NVIDIA": 1},
    installed={"NVIDIA": Installed(("/dev/nvidia0",), "/usr/bin/nvidia-smi", "580.65.06")},
)
GPU = Gpu(
    0,
    name="NVIDIA H100 80GB HBM3",
    uuid="GPU-5e1f3c9a-7f4e-4a2b-9f0e-0d6a1b2c3d4e",
    compute_capability=(9, 0),
    pci_width=(16, 16),
    pci_generation=(5, 5),
    persistence=True,
    power_limit_watts=700.0,
    power_default_watts=700.0,
    throttle_reasons=(),
    ecc_errors=0,
    temperature_celsius=34,
    mig=False,
    processes=(),
)
DRIVER = Driver("580.65.06", (13, 0), (GPU,))
NO_GPU = {
    "driver": Driver(problem="NVML Shared Library Not Found"),
    "host": {"gpus_on_bus": {"NVIDIA": 0}, "installed": {}},
}


def product(device: str, **changes: Any) -> DeviceProduct:
    """A product that was right."""
    return dataclasses.replace(DeviceProduct(device, EXPECTED, device, 0.2), **changes)


TORCH = Framework(
    "torch",
    installed=True,
    install="pip install torch",
    install_gpu="pip install --force-reinstall torch",
    version="2.11.0+cu130",
    devices=("cpu", "cuda:0"),
    examination=Examination(
        "CUDA 13.0", ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120", "compute_120")
    ),
    products=(product("cpu"), product("cuda:0")),
    libraries={"cudnn": ["/venv/nvidia/cudnn/lib/libcudnn.so.9"]},
    seconds=3.0,
)
JAX = Framework(
    "jax",
    installed=True,
    install="pip install jax",
    install_gpu="pip install 'jax[cuda13]'",
    version="0.10.2",
    devices=("cpu", "cuda:0"),
    examination=Examination("CUDA 13"),
    products=(product("cpu"), product("cuda:0")),
    seconds=4.0,
)
GOOD = Facts(HOST, DRIVER, 0.02, (TORCH, JAX))


def on(facts: Facts = GOOD, **changes: Any) -> Facts:
    """``facts`` with some fields of its host, its driver, its only GPU or its torch changed."""
    host = dataclasses.replace(facts.host, **changes.get("host", {}))
    driver = changes.get("driver", facts.driver)
    if "gpu" in changes:
        driver = dataclasses.replace(driver, gpus=(dataclasses.replace(GPU, **changes["gpu"]),))
    torch = changes.get("torch", TORCH)
    return Facts(
        host, driver, changes.get("busy", facts.busy), (torch, JAX) if facts.frameworks else None
    )


def examined(**changes: Any) -> Framework:
    """``TORCH`` with other devices, products or libraries, or another examination."""
    assert TORCH.examination is not None
    own = {
        name: changes.pop(name)
        for name in ("devices", "products", "problem", "printed")
        if name in changes
    }
    return dataclasses.replace(
        TORCH, **own, examination=dataclasses.replace(TORCH.examination, **changes)
    )


def named(facts: Facts, id_: str) -> Check:
    """The one check of that id."""
    found = [check for check in diagnose(facts) if check.id == id_]
    assert len(found) == 1, f"{id_}: {[check.id for check in diagnose(facts)]}"
    return found[0]
