"""The machine and its load, as kept in a record."""

from __future__ import annotations

import hashlib
import hmac
import platform
import re
from collections.abc import Mapping
from pathlib import Path

from trainmark.measure.control_group import cpu_quota
from trainmark.measure.files import read_text
from trainmark.measure.host import governors, turbo, usable_core_numbers
from trainmark.measure.vendor import Driver
from trainmark.measure.vendors import read_driver
from trainmark.record.record import Machine


def describe(
    load: float | None = None,
    driver: Driver | None = None,
    host: Path = Path("/"),
    labels: Mapping[str, str] | None = None,
) -> Machine:
    """Describe this machine.

    Args:
        load: share of all cores that was busy before the run, 0 to 1.
        driver: driver of its GPUs; queried if not given.
        host: root of the file system.
        labels: the user's labels of it.
    """
    import psutil

    driver = driver or read_driver()
    return Machine(
        name=platform.node(),
        os=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        cpu=cpu_name(),
        physical_cores=psutil.cpu_count(logical=False),
        logical_cores=psutil.cpu_count(),
        usable_cores=len(usable_core_numbers()),
        memory_bytes=psutil.virtual_memory().total,
        gpus=[gpu.name or f"GPU {gpu.index}" for gpu in driver.gpus],
        gpu_driver=driver.version,
        load_before=load,
        cpu_quota=cpu_quota(host),
        cpu_governors=list(governors(host)),
        cpu_turbo=turbo(host),
        cuda=None if driver.cuda is None else f"{driver.cuda[0]}.{driver.cuda[1]}",
        identity=identity(host),
        labels=dict(labels or {}),
    )


def identity(host: Path = Path("/")) -> str | None:
    """Return a keyed hash of the system's machine id, which must stay private (see machine-id(5)).

    The result is None if there is none, as in most containers and outside Linux.
    """
    number = read_text(host / "etc/machine-id") or ""
    if not re.fullmatch("[0-9a-f]{32}", number):
        return None
    return hmac.new(bytes.fromhex(number), b"trainmark", hashlib.sha256).hexdigest()[:16]


def made_here(machine: Machine, host: Path = Path("/")) -> bool:
    """Whether a record's machine is this one, as far as known.

    Another machine can have the same name and a shared disk.
    """
    pairs = (
        (machine.name, platform.node()),
        (machine.cpu, cpu_name()),
        (machine.identity, identity(host)),
    )
    return all(theirs == ours or None in (theirs, ours) for theirs, ours in pairs)


def cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str | None:
    """Return the CPU's name as the system reports it; None if it does not."""
    if cpuinfo.is_file():
        found = re.search(
            r"^model name\s*:\s*(.+)$", cpuinfo.read_text(errors="replace"), re.MULTILINE
        )
        return found[1].strip() if found else None
    return platform.processor() or None
