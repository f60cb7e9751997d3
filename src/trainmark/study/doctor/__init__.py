"""``trainmark doctor``: check this machine, and print a fix for each problem.

Readers that are passed in gather the facts once; every check is a function of facts, so it also runs on recorded
ones.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from trainmark.data.locate import Located
from trainmark.execute.parent.examine import Framework, examine_all
from trainmark.measure.host import Host, read_host
from trainmark.measure.machine import cpu_load
from trainmark.measure.vendor import Driver
from trainmark.measure.vendors import read_driver, vendor_of
from trainmark.study.doctor import data, frameworks, host, nvidia
from trainmark.study.doctor.check import Check, skipped

OF_VENDOR: dict[str, Callable[[Host, Driver], Iterator[Check]]] = {"NVIDIA": nvidia.checks}
"""A vendor without checks of its own is not among them."""
DATASETS = ("mnist", "cifar10")
_LOOK_AT_LOAD_SECONDS = 0.5


@dataclass(frozen=True)
class Facts:
    """What the checks look at.

    Args:
        busy: share of all cores in use, 0 to 1.
        frameworks: None where they were not asked.
    """

    host: Host
    driver: Driver
    busy: float | None = None
    frameworks: tuple[Framework, ...] | None = None


def gather(
    *,
    quick: bool = False,
    read_host: Callable[[], Host] = read_host,
    read_driver: Callable[[], Driver] = read_driver,
    busy: Callable[[], float] = lambda: cpu_load(_LOOK_AT_LOAD_SECONDS),
    examine: Callable[[bool], tuple[Framework, ...]] = lambda at_once: examine_all(at_once=at_once),
) -> Facts:
    """The facts as they are now.

    Args:
        quick: leave the frameworks unasked.
    """
    share = busy()  # first, before this very program makes the machine busy
    host, driver = read_host(), read_driver()
    if quick:
        return Facts(host, driver, share)
    # Where a GPU takes one process at a time, frameworks that came together would be turned away.
    frameworks = examine(not any(gpu.exclusive for gpu in driver.gpus))
    return Facts(host, driver, share, frameworks)


def diagnose(facts: Facts) -> Iterator[Check]:
    """Every check of the machine and of its frameworks."""
    yield host.clock(facts.host)
    yield host.cpu_quota(facts.host)
    yield host.governor(facts.host)
    yield host.load(facts.busy)
    yield host.memory(facts.host)
    yield host.memlock(facts.host, facts.driver)
    yield host.stack(facts.host)
    yield host.shared_memory(facts.host)
    yield host.energy(facts.host)
    yield host.rosetta(facts.host)
    if of_vendor := OF_VENDOR.get(maker := vendor_of(facts.driver).name):
        yield from of_vendor(facts.host, facts.driver)
    else:
        yield skipped("gpu.driver", f"there are no checks for GPUs of {maker}")
    yield from host.other_gpus(facts.host)
    if facts.frameworks is not None:
        yield from frameworks.each(facts.frameworks, facts.host, facts.driver)


def look_at_data(locate: Callable[[str], Located], places: tuple[Path, ...]) -> Iterator[Check]:
    """Every check of data.

    Args:
        locate: finds a dataset without asking a mirror.
        places: folders that are written to.
    """
    for name in DATASETS:
        yield data.dataset(name, locate)
    yield from data.disk([(place, _free(place)) for place in places])


def _free(place: Path) -> int | None:
    """Bytes free where ``place`` is, or will be."""
    try:
        there = next(folder for folder in (place, *place.parents) if folder.exists())
        return shutil.disk_usage(there).free
    except (OSError, StopIteration):
        return None
