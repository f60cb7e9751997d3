"""Who else uses the CPU, as far as that can be seen from here."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from trainmark.measure.machine import cpu_load

_LEAST_CORES = 0.05


@dataclass(frozen=True)
class Neighbour:
    """A process of others, and how many cores it kept busy."""

    name: str
    pid: int
    cores: float


class Neighbours:
    """What others do from now on."""

    def __init__(self) -> None:
        self._start, self._before = time.perf_counter(), _cpu_seconds()

    def load(self) -> float:
        """Share of the CPU in use; looks for a moment. For when nothing of ours computes."""
        return cpu_load()

    def busiest(self, most: int = 3) -> list[Neighbour]:
        """The processes that took most since then, and are still there."""
        seconds = time.perf_counter() - self._start
        found = [
            Neighbour(name, pid, (used - self._before.get((pid, name), 0.0)) / seconds)
            for (pid, name), used in _cpu_seconds().items()
        ]
        found.sort(key=lambda each: -each.cores)
        return [each for each in found[:most] if each.cores >= _LEAST_CORES]


def _cpu_seconds() -> dict[tuple[int, str], float]:
    """Of every process that is neither this one nor started by it."""
    import psutil

    ours = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    found = {}
    for process in psutil.process_iter(["name", "cpu_times"]):
        times = process.info["cpu_times"]
        if times is not None and process.pid not in ours:
            found[process.pid, str(process.info["name"])] = times.user + times.system
    return found
