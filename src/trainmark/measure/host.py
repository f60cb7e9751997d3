"""Properties of this machine that affect training: cores, limits, clocks and settings.

Every file is read below a root that is passed in, so that tests don't need such a machine. What
can't be read is None.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import re
import resource
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmark.measure.control_group import cpu_quota, memory_left
from trainmark.measure.files import read_text
from trainmark.measure.rapl import Rapl
from trainmark.measure.vendor import Installed
from trainmark.measure.vendors import VENDORS

ROOT = Path("/")
"""Folder below which the files of this machine are read."""

_OF_VENDORS = itertools.chain.from_iterable(vendor.steering for vendor in VENDORS)
STEERING = (*_OF_VENDORS, "LD_LIBRARY_PATH")
"""Environment variables that select the device and the libraries."""

_MAKERS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}  # by PCI vendor id
_DISPLAY_CLASS = "0x03"


@dataclass(frozen=True)
class Limits:
    """Limits of this process in bytes; infinite if there is none."""

    memlock_bytes: float | None = None
    stack_bytes: float | None = None


@dataclass(frozen=True)
class Host:
    """The machine, without its GPUs.

    Args:
        container: the kind of container that this process runs in; None outside.
        wsl: whether the kernel is that of the Windows Subsystem for Linux.
        cpu_quota: cores that the control group may use at a time; None without a quota.
        governors: the CPU's frequency governors in use.
        shared_memory_bytes: size of ``/dev/shm``.
        memory_available_bytes: memory available without swapping, within the limit of the control
            group.
        swap_bytes: swap in use, and in total.
        clock_resolution_seconds: resolution of the clock that times runs.
        gpus_on_bus: number of display devices on the PCI bus by vendor, with or without a driver;
            None if the bus is not visible.
        energy_problem: why the CPU's energy can't be read; None if it can.
        installed: what is installed of each GPU vendor, by its name.
        wsl_gpu: under WSL, whether a GPU of any vendor is passed through.
        translated: whether Rosetta translates this program, which was built for Intel; None outside
            macOS.
        infiniband: names of the adapters.
        environment: the variables of :data:`STEERING` that are set.
    """

    container: str | None = None
    wsl: bool = False
    usable_cores: int | None = None
    cpu_quota: float | None = None
    governors: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    shared_memory_bytes: int | None = None
    memory_available_bytes: int | None = None
    swap_bytes: tuple[int, int] | None = None
    clock_resolution_seconds: float | None = None
    gpus_on_bus: dict[str, int] | None = None
    energy_problem: str | None = "it was not checked"
    installed: Mapping[str, Installed] = field(default_factory=dict)
    wsl_gpu: bool = False
    translated: bool | None = None
    infiniband: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


def read_memory_available(root: Path = ROOT) -> int | None:
    """Return the memory available without swapping, within the limit of the control group.

    The result is None if it is unknown.
    """
    import psutil

    memory = _try(psutil.virtual_memory)
    known = [
        each
        for each in (memory.available if memory else None, memory_left(root))
        if each is not None
    ]
    return min(known, default=None)


def read_host(root: Path = ROOT, environment: Mapping[str, str] = os.environ) -> Host:
    """Read the current state of this machine."""
    import psutil

    release = read_text(root / "proc/sys/kernel/osrelease") or platform.release()
    swap = _try(psutil.swap_memory)
    return Host(
        container=container(root, environment),
        wsl="microsoft" in release.lower(),
        usable_cores=len(usable_core_numbers()),
        cpu_quota=cpu_quota(root),
        governors=governors(root),
        limits=read_limits(),
        shared_memory_bytes=_try(lambda: shutil.disk_usage(root / "dev/shm").total),
        memory_available_bytes=read_memory_available(root),
        swap_bytes=(swap.used, swap.total) if swap else None,
        clock_resolution_seconds=clock_resolution(),
        gpus_on_bus=gpus_on_bus(root),
        energy_problem=Rapl.of(root).problem,
        installed={vendor.name: vendor.installed(root, environment) for vendor in VENDORS},
        wsl_gpu=(root / "dev/dxg").exists(),
        translated=is_translated(),
        infiniband=tuple(sorted(path.name for path in (root / "sys/class/infiniband").glob("*"))),
        environment={name: environment[name] for name in STEERING if name in environment},
    )


def usable_core_numbers() -> tuple[int, ...]:
    """Return the logical cores that this process and its children may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return tuple(sorted(affinity(0))) if affinity else tuple(range(os.cpu_count() or 1))


def container(root: Path = ROOT, environment: Mapping[str, str] = os.environ) -> str | None:
    """Detect the kind of container; None outside a container."""
    if "APPTAINER_CONTAINER" in environment or "SINGULARITY_CONTAINER" in environment:
        return "apptainer"
    if (root / ".dockerenv").exists():
        return "kubernetes" if "KUBERNETES_SERVICE_HOST" in environment else "docker"
    marked = read_text(root / "run/systemd/container") or environment.get("container")
    if marked:
        return marked
    if (root / "run/.containerenv").exists():
        return "podman"
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    groups = read_text(root / "proc/1/cgroup") or ""
    found = re.search(r"docker|kubepods|lxc|containerd", groups)
    return found[0] if found else None


def governors(root: Path = ROOT) -> tuple[str, ...]:
    """Return the frequency governors of the cores.

    The result is empty if not visible, as in a virtual machine.
    """
    files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    return tuple(sorted({governor for governor in map(read_text, files) if governor}))


def turbo(root: Path = ROOT) -> bool | None:
    """Whether cores may run above their base frequency; None if unknown."""
    intel = read_text(root / "sys/devices/system/cpu/intel_pstate/no_turbo")
    if intel is not None:
        return intel == "0"
    others = read_text(root / "sys/devices/system/cpu/cpufreq/boost")
    return None if others is None else others == "1"


def gpus_on_bus(root: Path = ROOT) -> dict[str, int] | None:
    """Count display devices on the PCI bus by vendor, including known vendors without any.

    The result is None without a bus.
    """
    devices = _try(lambda: list((root / "sys/bus/pci/devices").iterdir()))
    if devices is None:
        return None
    found = {vendor.name: 0 for vendor in VENDORS}
    for device in devices:
        maker = _MAKERS.get(read_text(device / "vendor") or "")
        if maker and (read_text(device / "class") or "").startswith(_DISPLAY_CLASS):
            found[maker] = found.get(maker, 0) + 1
    return found


def clock_resolution(clock: Callable[[], float] = time.perf_counter, tries: int = 100) -> float:
    """Return the smallest observed step of the clock, in seconds; negative if it went backwards."""
    steps = []
    for _ in range(tries):
        start = now = clock()
        while now == start:
            now = clock()
        steps.append(now - start)
    return min(steps)


def read_limits() -> Limits:
    """Read the soft limits of this process."""

    def soft(what: int) -> float:
        limit = resource.getrlimit(what)[0]
        return float("inf") if limit == resource.RLIM_INFINITY else float(limit)

    return Limits(soft(resource.RLIMIT_MEMLOCK), soft(resource.RLIMIT_STACK))


def is_translated(name: str = "sysctl.proc_translated") -> bool | None:
    """Whether Rosetta translates this process; None outside macOS."""
    if sys.platform != "darwin":
        return None
    value = ctypes.c_int(0)
    size = ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    library = ctypes.CDLL(None)
    failed = library.sysctlbyname(
        name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)
    )
    return failed == 0 and value.value == 1


def _try(read: Callable[[], Any]) -> Any:
    """Return the result of ``read``; None if this system doesn't provide it."""
    try:
        return read()
    except (OSError, RuntimeError, ValueError, NotImplementedError):
        return None
