"""What this machine allows a training: its cores, limits, clocks and settings. Every file is read below a root that is
passed in, so that tests need no such machine. What can't be read is None."""

from __future__ import annotations

import os
import platform
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainmark.measure.machine import usable_cores

ROOT = Path("/")

STEERING = (
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "JAX_PLATFORMS",
    "XLA_FLAGS",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "TF_ENABLE_ONEDNN_OPTS",
    "KERAS_BACKEND",
    "LD_LIBRARY_PATH",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
)
"""Variables of the environment that decide which device is used, or how quickly."""

_NVIDIA_VENDOR, _DISPLAY_CLASS = "0x10de", "0x03"


@dataclass(frozen=True)
class Limits:
    """Limits of this process, bytes; infinite where there is none."""

    memlock_bytes: float | None = None
    stack_bytes: float | None = None
    open_files: float | None = None


@dataclass(frozen=True)
class Host:
    """The machine, as far as it is not a GPU.

    Args:
        container: the kind of container this runs in, None outside.
        wsl: whether the kernel is that of the Windows Subsystem for Linux.
        cpu_quota: cores that the control group may use at a time; None where it has no quota.
        load: mean number of busy or waiting processes in the last minute.
        governors: of the CPU's frequency, one for every kind in use.
        turbo: whether the CPU may run above its base frequency.
        shared_memory_bytes: size of ``/dev/shm``.
        swap_bytes: in use, and in all.
        clock_resolution_seconds: of the clock that runs are timed by.
        nvidia_on_bus: NVIDIA display devices on the PCI bus, whether a driver has them or not.
        nvidia_device_files: such as ``/dev/nvidia0``; WSL has ``/dev/dxg`` in their stead.
        nvidia_smi: path of the command.
        nvidia_module: version of the driver's kernel module that is loaded.
        environment: those of :data:`STEERING` that are set.
    """

    system: str
    release: str
    python: str
    container: str | None = None
    wsl: bool = False
    logical_cores: int | None = None
    usable_cores: int | None = None
    cpu_quota: float | None = None
    load: float | None = None
    governors: tuple[str, ...] = ()
    turbo: bool | None = None
    numa_nodes: int | None = None
    limits: Limits = field(default_factory=Limits)
    shared_memory_bytes: int | None = None
    memory_available_bytes: int | None = None
    swap_bytes: tuple[int, int] | None = None
    clock_resolution_seconds: float | None = None
    nvidia_on_bus: int | None = None
    nvidia_device_files: tuple[str, ...] = ()
    nvidia_smi: str | None = None
    nvidia_module: str | None = None
    environment: dict[str, str] = field(default_factory=dict)


def read_host(root: Path = ROOT, environment: Mapping[str, str] = os.environ) -> Host:
    """This machine as it is now."""
    import psutil

    release = _read(root / "proc/sys/kernel/osrelease") or platform.release()
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    return Host(
        system=platform.system(),
        release=release,
        python=platform.python_version(),
        container=container(root, environment),
        wsl="microsoft" in release.lower(),
        logical_cores=psutil.cpu_count(),
        usable_cores=usable_cores(),
        cpu_quota=cpu_quota(root),
        load=_load(root),
        governors=governors(root),
        turbo=turbo(root),
        numa_nodes=len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        limits=read_limits(),
        shared_memory_bytes=_size_of(root / "dev/shm"),
        memory_available_bytes=memory.available,
        swap_bytes=(swap.used, swap.total),
        clock_resolution_seconds=clock_resolution(),
        nvidia_on_bus=nvidia_on_bus(root),
        nvidia_device_files=_device_files(root),
        nvidia_smi=shutil.which("nvidia-smi", path=environment.get("PATH")),
        nvidia_module=_read(root / "sys/module/nvidia/version"),
        environment={name: environment[name] for name in STEERING if name in environment},
    )


def cpu_quota(root: Path = ROOT) -> float | None:
    """Cores that this process's control group may use at a time, the least of it and all above it; None: no quota."""
    quotas = [quota for quota in (*_quotas_v2(root), _quota_v1(root)) if quota is not None]
    return min(quotas, default=None)


def container(root: Path = ROOT, environment: Mapping[str, str] = os.environ) -> str | None:
    """The kind of container, by the marks that each leaves; None where there is none."""
    if (root / ".dockerenv").exists():
        return "docker"
    marked = _read(root / "run/systemd/container") or environment.get("container")
    if marked:
        return marked
    if (root / "run/.containerenv").exists():
        return "podman"
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    groups = _read(root / "proc/1/cgroup") or ""
    found = re.search(r"docker|kubepods|lxc|containerd", groups)
    return found[0] if found else None


def governors(root: Path = ROOT) -> tuple[str, ...]:
    """What chooses the frequency of the cores; empty where that is not told, as in a virtual machine."""
    files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    return tuple(sorted({governor for governor in map(_read, files) if governor}))


def turbo(root: Path = ROOT) -> bool | None:
    """Whether cores may run above their base frequency; None where that is not told."""
    intel = _read(root / "sys/devices/system/cpu/intel_pstate/no_turbo")
    if intel is not None:
        return intel == "0"
    others = _read(root / "sys/devices/system/cpu/cpufreq/boost")
    return None if others is None else others == "1"


def nvidia_on_bus(root: Path = ROOT) -> int | None:
    """Number of NVIDIA display devices on the PCI bus; None where the bus can't be seen."""
    devices = root / "sys/bus/pci/devices"
    if not devices.is_dir():
        return None
    return sum(
        _read(device / "vendor") == _NVIDIA_VENDOR and (_read(device / "class") or "").startswith(_DISPLAY_CLASS)
        for device in devices.iterdir()
    )


def clock_resolution(clock: Callable[[], float] = time.perf_counter, tries: int = 100) -> float:
    """Smallest step of the clock that was seen, in seconds; negative where it went backwards."""
    steps = []
    for _ in range(tries):
        start = now = clock()
        while now == start:
            now = clock()
        steps.append(now - start)
    return min(steps)


def read_limits() -> Limits:
    """The soft limits of this process."""
    try:
        import resource
    except ImportError:  # Windows
        return Limits()

    def soft(what: int) -> float:
        limit = resource.getrlimit(what)[0]
        return float("inf") if limit == resource.RLIM_INFINITY else float(limit)

    return Limits(soft(resource.RLIMIT_MEMLOCK), soft(resource.RLIMIT_STACK), soft(resource.RLIMIT_NOFILE))


def _quotas_v2(root: Path) -> list[float | None]:
    groups = re.search(r"^0::(/.*)$", _read(root / "proc/self/cgroup") or "", re.MULTILINE)
    if groups is None:
        return []
    top = root / "sys/fs/cgroup"
    group = top / groups[1].lstrip("/")
    folders = [group, *(parent for parent in group.parents if parent == top or top in parent.parents)]
    return [_quota_in(_read(folder / "cpu.max")) for folder in folders]


def _quota_in(written: str | None) -> float | None:
    """Cores of a ``cpu.max``, such as ``150000 100000``."""
    quota, _, period = (written or "").partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _quota_v1(root: Path) -> float | None:
    folder = root / "sys/fs/cgroup/cpu"
    quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
    if quota is None or period is None or int(quota) <= 0:
        return None
    return int(quota) / int(period)


def _device_files(root: Path) -> tuple[str, ...]:
    found = [path for pattern in ("nvidia[0-9]*", "dxg") for path in (root / "dev").glob(pattern)]
    return tuple(sorted(f"/dev/{path.name}" for path in found))


def _load(root: Path) -> float | None:
    written = _read(root / "proc/loadavg")
    return float(written.split()[0]) if written else None


def _size_of(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).total
    except OSError:
        return None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None
