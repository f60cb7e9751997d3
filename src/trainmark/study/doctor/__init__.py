"""``trainmark doctor``: check this machine, and print a fix for each problem.

Facts are gathered once, by readers passed in; every check is a function of facts, so it also runs
on recorded ones.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from trainmark.data.locate import Located
from trainmark.execute.parent.examine import Framework, examine_all
from trainmark.measure.host import Host, read_host
from trainmark.measure.neighbours import read_load
from trainmark.measure.vendor import Driver
from trainmark.measure.vendors import read_driver, vendor_of
from trainmark.study.doctor import data, frameworks, host, nvidia
from trainmark.study.doctor.check import Check, skipped

OF_VENDOR: dict[str, Callable[[Host, Driver], Iterator[Check]]] = {"NVIDIA": nvidia.checks}
"""Vendors with their own checks."""
DATASETS = ("mnist", "cifar10")
"""Datasets that are looked for."""
_LOOK_AT_LOAD_SECONDS = 0.5
"""Duration of the measurement of the CPU's load, in seconds."""


@dataclass(frozen=True)
class Facts:
    """What the checks look at.

    Args:
        busy: share of all cores in use, 0 to 1.
        frameworks: None if they were not examined.
    """

    host: Host
    driver: Driver
    busy: float | None = None
    frameworks: tuple[Framework, ...] | None = None


def _read_busy() -> float:
    return read_load(_LOOK_AT_LOAD_SECONDS).taken


def _examine(at_once: bool) -> tuple[Framework, ...]:
    return examine_all(at_once=at_once)


def gather(
    *,
    quick: bool = False,
    read_host: Callable[[], Host] = read_host,
    read_driver: Callable[[], Driver] = read_driver,
    busy: Callable[[], float] = _read_busy,
    examine: Callable[[bool], tuple[Framework, ...]] = _examine,
) -> Facts:
    """Gather the current facts.

    Args:
        quick: don't examine the frameworks.
    """
    share = busy()  # this comes first, before this program itself uses the CPU
    host = read_host()
    driver = read_driver()
    if quick:
        return Facts(host, driver, share)
    # A GPU in exclusive mode accepts one process at a time, so frameworks can't be examined in
    # parallel.
    return Facts(host, driver, share, examine(not any(gpu.exclusive for gpu in driver.gpus)))


def diagnose(facts: Facts) -> Iterator[Check]:
    """Run every check of the machine and of its frameworks."""
    machine = facts.host
    yield Check("host.clock", *host.clock(machine.clock_resolution_seconds))
    yield Check("host.cpu-quota", *host.cpu_quota(machine.cpu_quota, machine.usable_cores))
    yield Check("host.cpu-governor", *host.governor(machine.governors))
    yield Check("host.load", *host.load(facts.busy))
    yield Check("host.memory", *host.memory(machine))
    yield Check("host.memlock", *host.memlock(machine, facts.driver))
    yield Check("host.stack", *host.stack(machine.limits.stack_bytes))
    yield Check("host.shared-memory", *host.shared_memory(machine.shared_memory_bytes))
    yield Check("host.energy", *host.energy(machine.energy_problem))
    yield Check("host.rosetta", *host.rosetta(machine.translated))
    maker = vendor_of(facts.driver).name
    if maker in OF_VENDOR:
        yield from OF_VENDOR[maker](machine, facts.driver)
    else:
        yield Check("gpu.driver", *skipped(f"no checks for {maker} GPUs"))
    others = host.other_gpus(machine)
    if others:
        yield Check("gpu.other-makers", *others)
    if facts.frameworks is not None:
        yield from frameworks.checks(facts.frameworks, machine, facts.driver)


def look_at_data(locate: Callable[[str], Located], places: tuple[Path, ...]) -> Iterator[Check]:
    """Run every check of the data.

    Args:
        locate: finds a dataset without downloading.
        places: folders that trainmark writes to.
    """
    for name in DATASETS:
        yield Check(f"data.{name}", *data.dataset(name, locate))
    free = [(place, _free(place)) for place in places]
    known = [(place, size) for place, size in free if size is not None]
    yield Check("data.disk-space", *data.disk(known))


def _free(place: Path) -> int | None:
    """Return the free bytes on the file system of ``place``, which may not exist yet."""
    try:
        there = next(folder for folder in (place, *place.parents) if folder.exists())
        return shutil.disk_usage(there).free
    except (OSError, StopIteration):
        return None
