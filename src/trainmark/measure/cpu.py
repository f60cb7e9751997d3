"""Usage of the cores, in total and by one process and its descendants.

It is read from outside, at no cost to the process.

Counters only grow, so the difference of two readings is what happened between them, even if
readings in between were dropped.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from trainmark.measure.files import read_number, read_text

if TYPE_CHECKING:
    import psutil

_T = TypeVar("_T")

_READING_COSTS = 100
"""A memory map is read again only after this many times its last reading time, so that reading
costs 1 % at most."""

_WITHIN = 10
"""It is only read if this many times its last reading time is left before the next timed moment."""

_MOST_FREQUENCIES = 8
"""Cores whose frequency is read; a few are enough, since reading can wake a core."""


@dataclass(frozen=True)
class Core:
    """Seconds since the machine started, of one core.

    It was ``busy`` with work of this machine, or ``stolen`` by other guests of the host of a
    virtual machine; there is also the total.
    """

    busy: float
    stolen: float
    total: float


def read_cores() -> tuple[Core, ...] | None:
    """Read every core of the machine; None if the system does not report them."""
    import psutil

    try:
        found = psutil.cpu_times(percpu=True)
    except (OSError, RuntimeError, NotImplementedError):
        return None
    return tuple(_core(each._asdict()) for each in found)


def _core(seconds: dict[str, float]) -> Core:
    # Guests are already counted in ``user`` and ``nice``.
    parts = {name: value for name, value in seconds.items() if not name.startswith("guest")}
    stolen = parts.get("steal", 0.0)
    total = sum(parts.values())
    return Core(total - parts["idle"] - parts.get("iowait", 0.0) - stolen, stolen, total)


def _times_and_memory(process: psutil.Process) -> tuple[Any, int]:
    return process.cpu_times(), process.memory_info().rss


def _proportional_bytes(process: psutil.Process) -> int:
    found: int = process.memory_full_info().pss
    return found


class Frequency:
    """The clock frequency of the CPU.

    Args:
        root: root of the machine's file system.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
        self._files = sorted(files)[:_MOST_FREQUENCIES]

    def hertz(self) -> float | None:
        """Return the current mean of these cores.

        The result is None if not visible, as in most virtual machines.
        """
        read = [read_number(file) for file in self._files]
        found = [kilohertz for kilohertz in read if kilohertz is not None]
        return 1e3 * sum(found) / len(found) if found else None


@dataclass(frozen=True)
class Usage:
    """Usage of a process and its descendants.

    It has CPU seconds so far, and resident memory, with shared pages repeated.
    """

    cpu_seconds: float
    resident_bytes: int


@dataclass(frozen=True)
class Waits:
    """Waits of all threads of a process and its descendants, so far.

    It has the seconds ready to run but waiting for a core, and how often another thread took their
    core.
    """

    seconds: float
    switches: int


def read_pressure(file: Path = Path("/proc/pressure/cpu")) -> float | None:
    """Return the seconds since boot in which something waited for a core.

    The result is None if the system does not count them.
    """
    found = re.search(r"total=(\d+)", read_text(file) or "")
    return int(found[1]) / 1e6 if found else None


class ProcessTree:
    """One process and its descendants.

    Args:
        pid: id of the process at the top.
        clock: times the reading of the memory map.
    """

    def __init__(self, pid: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self._pid = pid
        self._clock = clock
        self._known: dict[int, psutil.Process] = {}
        self._map_due = 0.0
        self._map_seconds = 0.0

    def usage(self) -> Usage | None:
        """Return the current usage; None if the process has ended."""
        # The system adds the time of children that ended to the parent that waited for them.
        parts = ("user", "system", "children_user", "children_system")
        found = self._read_each(_times_and_memory)
        if not found:
            return None
        seconds = 0.0
        for times, _ in found:
            for part in parts:
                seconds += getattr(times, part, 0.0)
        return Usage(seconds, sum(resident for _, resident in found))

    def waits(self) -> Waits | None:
        """Return how its threads waited for a core.

        The result is None if the system does not report it, as outside Linux.
        """
        found = []
        for process in self._processes():
            for thread in Path(f"/proc/{process.pid}/task").glob("*"):
                # The thread may have ended, and some kernels don't count.
                with contextlib.suppress(OSError, ValueError, IndexError):
                    seconds = int((thread / "schedstat").read_text().split()[1]) / 1e9
                    switches = int(
                        (thread / "status").read_text().rpartition("nonvoluntary_ctxt_switches:")[2]
                    )
                    found.append((seconds, switches))
        return (
            Waits(sum(each[0] for each in found), sum(each[1] for each in found)) if found else None
        )

    def proportional_bytes(self, untimed_seconds: float) -> int | None:
        """Return memory in bytes, with shared pages divided among the processes (PSS).

        Reading it can block the process when it maps or unmaps memory, so it must happen in untimed
        moments. None if the system does not report it, or if reading would last into the next timed
        moment or cost too much.

        Args:
            untimed_seconds: how long the moment is.
        """
        start = self._clock()
        if start < self._map_due or untimed_seconds <= _WITHIN * self._map_seconds:
            return None
        found = self._read_each(_proportional_bytes)
        end = self._clock()
        self._map_seconds = end - start
        self._map_due = end + _READING_COSTS * self._map_seconds
        return sum(found) if found else None

    def _read_each(self, read: Callable[[psutil.Process], _T]) -> list[_T]:
        """Read each process.

        Those that have ended or that the system does not report are left out, so the results can't
        be matched to processes.
        """
        import psutil

        found = []
        for process in self._processes():
            # On systems other than Linux, psutil may lack a function (AttributeError) or the system
            # may refuse it (OSError).
            with contextlib.suppress(psutil.Error, AttributeError, OSError):
                found.append(read(process))
        return found

    def _processes(self) -> list[psutil.Process]:
        """Return the current processes.

        Objects are kept, since creating one costs more than reading it.
        """
        import psutil

        there: dict[int, psutil.Process] = {}
        for pid in (self._pid, *_descendants(self._pid)):
            with contextlib.suppress(psutil.Error):
                there[pid] = self._known.get(pid) or psutil.Process(pid)
        self._known = there
        return list(there.values())


def _descendants(pid: int, proc: Path = Path("/proc")) -> Iterable[int]:
    """Return the process ids of the running descendants of ``pid``."""
    if (proc / str(pid) / "task" / str(pid) / "children").exists():
        yield from _children_told_by_kernel(pid, proc)
        return
    import psutil

    with contextlib.suppress(psutil.Error):
        yield from (child.pid for child in psutil.Process(pid).children(recursive=True))


def _children_told_by_kernel(pid: int, proc: Path) -> Iterable[int]:
    """Return the children of every thread, from Linux.

    Scanning all processes of the machine would cost far more.
    """
    with contextlib.suppress(OSError):  # the process has ended
        for thread in (proc / str(pid) / "task").iterdir():
            for child in map(int, (read_text(thread / "children") or "").split()):
                yield child
                yield from _children_told_by_kernel(child, proc)
