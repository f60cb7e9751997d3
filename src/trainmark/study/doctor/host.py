"""Checks of the machine, without its GPUs."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from trainmark import units
from trainmark.measure.host import Host
from trainmark.measure.vendor import Driver
from trainmark.measure.vendors import VENDORS
from trainmark.record.caveats import BUSY_SHARE
from trainmark.study.doctor.check import Finding, failed, passed, skipped, warned

MIB = 2**20
"""Bytes of a mebibyte."""
GIB = 2**30
"""Bytes of a gibibyte."""
_COARSE_CLOCK_SECONDS = 1e-3
"""Step of a clock, in seconds, that is too coarse to time short steps."""
_SMALL_MEMLOCK = 64 * MIB
"""Lockable memory, in bytes, below which copies between GPUs may fail."""
_SMALL_STACK = 4 * MIB
"""Stack of a thread, in bytes, below which compilers may fail."""
_SMALL_SHARED = GIB
"""Size of ``/dev/shm``, in bytes, below which loaders with several processes may fail."""
_LITTLE_MEMORY = 2 * GIB
"""Available memory, in bytes, below which training may fail."""


def clock(resolution: float | None) -> Finding:
    """Whether the clock is fine enough for timing and never goes back."""
    if resolution is None:
        return skipped("the clock could not be read")
    if resolution < 0:
        return failed(
            f"the clock went back by {-resolution:.3g} s",
            "Restart the machine, or its virtual clock.",
        )
    if resolution > _COARSE_CLOCK_SECONDS:
        fix = (
            "Set another clock source in "
            "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        )
        return warned(f"the clock has steps of {resolution * 1e3:.3g} ms", fix)
    return passed(f"steps of {resolution * 1e9:.0f} ns or less")


def cpu_quota(quota: float | None, cores: int | None) -> Finding:
    """Whether the control group allows all visible cores: frameworks start a thread for each."""
    if quota is None or cores is None:
        return passed(f"no quota, {units.many(cores, 'core')}" if cores else "no quota")
    if quota < cores:
        threads = max(int(quota), 1)
        return warned(
            f"the control group allows {quota:g} of {cores} visible cores, so frameworks start "
            "too many threads",
            f"trainmark run --threads {threads}, or start the container with --cpuset-cpus "
            "instead of --cpus",
        )
    return passed(f"{quota:g} cores allowed, {cores} visible")


def governor(governors: Sequence[str]) -> Finding:
    """Whether the CPU keeps its frequency high."""
    if not governors:
        return skipped("the frequency governor is not visible (a virtual machine, or not Linux)")
    if set(governors) <= {"performance"}:
        return passed("performance")
    return warned(
        f"{', '.join(governors)}: cores speed up with a delay",
        "sudo cpupower frequency-set -g performance",
    )


def load(busy: float | None) -> Finding:
    """Whether something else is using the CPU.

    Args:
        busy: share of all cores in use now, 0 to 1.
    """
    if busy is None:
        return skipped("the load could not be read")
    found = f"{busy:.0%} of the machine's cores in use"
    if busy > BUSY_SHARE:
        return warned(found, "Wait, or stop other programs: top")
    return passed(found)


def memory(host: Host) -> Finding:
    """Whether enough memory is free and swap is little used."""
    if host.memory_available_bytes is None:
        return skipped("memory use could not be read")
    used, total = host.swap_bytes or (0, 0)
    swap = f"{units.bytes_(used)} of {units.bytes_(total)} swap in use"
    found = f"{units.bytes_(host.memory_available_bytes)} available, {swap}"
    if host.memory_available_bytes < _LITTLE_MEMORY:
        return warned(found, "Stop programs that use much memory: ps aux --sort=-rss | head")
    if sys.platform == "linux" and total and used > total / 2:  # elsewhere swap grows as it is used
        return warned(found, "sudo swapoff -a && sudo swapon -a, once there is enough free memory")
    return passed(found)


def memlock(host: Host, driver: Driver) -> Finding:
    """Whether enough memory can be locked for copies between GPUs and machines."""
    if len(driver.gpus) < 2 and not host.infiniband:
        return skipped("not needed: neither several GPUs nor InfiniBand")
    return _limit(
        host.limits.memlock_bytes,
        _SMALL_MEMLOCK,
        "may be locked, too little for copies between GPUs and machines",
        "ulimit -l unlimited (in Slurm before you submit: jobs inherit limits), or docker run "
        "--ulimit memlock=-1",
    )


def stack(limit: float | None) -> Finding:
    """Whether the stack of a thread is large enough for compilers."""
    return _limit(
        limit,
        _SMALL_STACK,
        "of stack per thread, too little for compilers",
        "ulimit -s 65536, or docker run --ulimit stack=67108864",
    )


def shared_memory(size: int | None) -> Finding:
    """Whether loader processes can pass batches through ``/dev/shm``."""
    if size is None:
        return skipped("there is no /dev/shm")
    if size < _SMALL_SHARED:
        found = f"/dev/shm has {units.bytes_(size)}, too little for multi-process data loaders"
        return warned(found, "docker run --ipc=host, or --shm-size=8g")
    return passed(units.bytes_(size))


def energy(problem: str | None) -> Finding:
    """Whether the CPU's energy can be read."""
    if problem is None:
        return passed("RAPL counters are readable")
    fix = ""
    if "permission" in problem:
        fix = "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj"
    return skipped(problem, fix)


def other_gpus(host: Host) -> Finding | None:
    """Return the GPUs of other makers, if any, which only the frameworks can check."""
    known = {vendor.name for vendor in VENDORS}
    others = []
    for maker, number in (host.gpus_on_bus or {}).items():
        if maker not in known and number:
            others.append(units.many(number, f"{maker} GPU"))
    if not others:
        return None
    listed = ", ".join(others)
    return skipped(f"{listed}: only the frameworks check these; power and clocks are not sampled")


def rosetta(translated: bool | None) -> Finding:
    """On a Mac, whether this Python is built for its processor."""
    if translated is None:
        return skipped("not macOS")
    if translated:
        return failed(
            "this Python is built for Intel, so it runs under Rosetta: slow, and without the GPU",
            "Recreate the environment with an arm64 Python; `file $(which python3)` must show "
            "arm64",
        )
    return passed("this Python is built for this processor")


def _limit(limit: float | None, least: int, what: str, fix: str) -> Finding:
    if limit is None:
        return skipped("the limit could not be read")
    if limit < least:
        return warned(f"{units.bytes_(int(limit))} {what}", fix)
    return passed("unlimited" if math.isinf(limit) else units.bytes_(int(limit)))
