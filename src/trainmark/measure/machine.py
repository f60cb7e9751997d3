"""What machine this is, and how busy it was. Every reader is passed in, so that tests need no such machine."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable
from pathlib import Path

from trainmark.record.record import Machine

BUSY_SHARE = 0.2
"""Share of all cores in use before a run from which on the machine counts as busy."""


def describe(load: float | None = None, gpus: Callable[[], tuple[list[str], str | None]] | None = None) -> Machine:
    """This machine.

    Args:
        load: share of all cores busy before the run, 0 to 1.
        gpus: names of the GPUs and their driver's version; reads NVML when not given.
    """
    import psutil

    names, driver = (gpus or read_gpus)()
    return Machine(
        name=platform.node(),
        os=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        cpu=cpu_name(),
        physical_cores=psutil.cpu_count(logical=False),
        logical_cores=psutil.cpu_count(),
        usable_cores=usable_cores(),
        memory_bytes=psutil.virtual_memory().total,
        gpus=names,
        gpu_driver=driver,
        load_before=load,
    )


def cpu_load(seconds: float = 0.2) -> float:
    """Share of all cores that was busy during the next ``seconds``, 0 to 1."""
    import psutil

    busy: float = psutil.cpu_percent(interval=seconds)
    return busy / 100


def usable_cores() -> int | None:
    """Logical cores this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count()


def cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str | None:
    """The CPU's name as the system tells it; None where it does not."""
    if cpuinfo.is_file():
        found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(errors="replace"), re.MULTILINE)
        return found[1].strip() if found else None
    return platform.processor() or None


def read_gpus() -> tuple[list[str], str | None]:
    """Names of NVIDIA GPUs and the driver's version through NVML; none where NVML is absent or fails."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return [], None
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return [pynvml.nvmlDeviceGetName(handle) for handle in handles], pynvml.nvmlSystemGetDriverVersion()
    except pynvml.NVMLError:
        return [], None
    finally:
        pynvml.nvmlShutdown()
