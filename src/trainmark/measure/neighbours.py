"""Other processes that use the CPU, as far as visible from here."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainmark.measure.cpu import Core, read_cores, read_pressure
from trainmark.measure.host import usable_core_numbers
from trainmark.record.caveats import BUSY_SHARE

if TYPE_CHECKING:
    from psutil import Process

_LEAST_CORES = 0.05


@dataclass(frozen=True)
class HostLoad:
    """How much of the usable cores others take, as shares from 0 to 1.

    Args:
        busy: share of the cores' time that processes used.
        stolen: share of the cores' time that the host of this virtual machine gave to other guests.
        waiting: share of the time in which a process waited for a core; None if the system does not
            count it.
    """

    busy: float = 0.0
    stolen: float = 0.0
    waiting: float | None = None

    @property
    def taken(self) -> float:
        """Share of the cores' time that is not free."""
        return min(self.busy + self.stolen, 1.0)

    @property
    def is_high(self) -> bool:
        """Whether the machine is too busy for steady measurements."""
        return self.taken > BUSY_SHARE


@dataclass(frozen=True)
class Neighbour:
    """Another process, and how many cores it kept busy."""

    name: str
    pid: int
    cores: float


class Neighbours:
    """CPU usage of other processes from now on."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._before = _cpu_seconds()

    def load(self) -> HostLoad:
        """Measure the load now; call this while nothing of ours computes."""
        return read_load()

    def busiest(self, most: int = 3) -> list[Neighbour]:
        """Return the running processes that used the most CPU time since then."""
        seconds = time.perf_counter() - self._start
        found = [
            Neighbour(
                str(process.info["name"]),
                process.pid,
                (used - self._before.get(process, 0.0)) / seconds,
            )
            for process, used in _cpu_seconds().items()
        ]
        found.sort(key=lambda each: -each.cores)
        return [each for each in found[:most] if each.cores >= _LEAST_CORES]


def read_load(seconds: float = 0.2) -> HostLoad:
    """Measure the load of the usable cores during the next ``seconds``."""
    start = time.perf_counter()
    before = _usable_cores()
    waited = read_pressure()
    time.sleep(seconds)
    passed = time.perf_counter() - start
    after = _usable_cores()
    end = read_pressure()
    total = after.total - before.total
    if total <= 0:
        return HostLoad()
    waiting = None if waited is None or end is None else (end - waited) / passed
    return HostLoad(
        (after.busy - before.busy) / total, (after.stolen - before.stolen) / total, waiting
    )


def _usable_cores() -> Core:
    """Return the sums of their times."""
    cores = read_cores() or ()
    usable = [cores[number] for number in usable_core_numbers() if number < len(cores)]
    return Core(
        *(sum(getattr(core, name) for core in usable) for name in ("busy", "stolen", "total"))
    )


def _cpu_seconds() -> dict[Process, float]:
    """Return the CPU seconds of every process except this one and its descendants."""
    import psutil

    ours = {psutil.Process(), *psutil.Process().children(recursive=True)}
    every = psutil.process_iter(["name", "cpu_times"])
    return {
        each: sum(each.info["cpu_times"][:2])
        for each in every
        if each.info["cpu_times"] and each not in ours
    }
