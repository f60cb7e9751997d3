"""Observe a run from outside, a few times a second: its processes, the machine and its GPUs.

The parent reads system files and queries the GPU driver, never the measured process. It keeps at
most :data:`MOST_ROWS` rows: beyond that, every second one is dropped and the interval doubles. Rows
hold counters that only grow, and shares are computed from their differences at the end, so dropping
rows loses no work done between them.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from trainmark.measure.cpu import (
    Core,
    Frequency,
    ProcessTree,
    Usage,
    Waits,
    read_cores,
    read_pressure,
)
from trainmark.measure.rapl import Rapl
from trainmark.measure.vendor import GpuReading
from trainmark.measure.vendors import open_meter
from trainmark.record.record import Samples

MOST_ROWS = 1000
INTERVAL_SECONDS = 0.2


@dataclass(frozen=True)
class Row:
    """One sample; all values but the times are None if they were not read.

    ``time`` is the clock's, and ``own_seconds`` is this process's CPU time.

    ``waits`` and ``pressure`` are only read at edges.
    """

    time: float
    cores: tuple[Core, ...] | None = None
    tree: Usage | None = None
    cpu_joules: float | None = None
    cpu_hertz: float | None = None
    gpus: tuple[GpuReading, ...] = ()
    own_seconds: float = 0.0
    waits: Waits | None = None
    pressure: float | None = None


def _read_joules() -> Callable[[], float | None]:
    return Rapl.of().joules


def _read_hertz() -> Callable[[], float | None]:
    return Frequency().hertz


@dataclass(frozen=True)
class Readers:
    """Functions that read the values of a row.

    They return None for what can't be read, and don't raise.
    """

    cores: Callable[[], tuple[Core, ...] | None] = read_cores
    tree: Callable[[int], ProcessTree] = ProcessTree
    cpu_joules: Callable[[], float | None] = field(default_factory=_read_joules)
    cpu_hertz: Callable[[], float | None] = field(default_factory=_read_hertz)
    gpus: Callable[[], tuple[GpuReading, ...]] = field(default_factory=open_meter)


class Sampler:
    """Watches processes, one after another.

    Args:
        readers: called for every row.
        interval: seconds between rows.
        clock: the clock that times epochs.
        most_rows: most rows kept for one run.
    """

    def __init__(
        self,
        readers: Readers | None = None,
        interval: float = INTERVAL_SECONDS,
        clock: Callable[[], float] = time.perf_counter,
        most_rows: int = MOST_ROWS,
    ) -> None:
        self._readers = readers or Readers()
        self._first_interval = interval
        self._clock = clock
        self._most_rows = most_rows
        self._tree: ProcessTree | None = None
        self._rows: list[Row] = []
        self._interval = interval
        self._due = 0.0

    def watch(self, pid: int) -> None:
        """Start again with the process ``pid``."""
        self._tree = self._readers.tree(pid)
        self._begin([])
        self.sample()

    def sample(self) -> None:
        """Add a row if one is due. Call this more often than the interval."""
        now = self._clock()
        if self._rows and now < self._rows[-1].time:
            # The clock went back, so earlier rows can't be compared with later ones.
            self._begin([])
        # A little early is better than waiting for the next call.
        if now >= self._due - self._interval / 4:
            self._add(now)
            # Keep a steady pace, without a burst of rows after a pause.
            self._due = max(self._due + self._interval, now + self._interval / 2)

    def look_now(self) -> Row:
        """Add a row now, even if none is due: at an edge of what is watched."""
        self._add(self._clock())
        waits = self._tree.waits() if self._tree else None
        return dataclasses.replace(self._rows[-1], waits=waits, pressure=read_pressure())

    def cpu_seconds(self) -> float | None:
        """Return the CPU time of the process and its descendants so far.

        The result is None if it can't be read.
        """
        usage = self._tree.usage() if self._tree else None
        return None if usage is None else usage.cpu_seconds

    def proportional_bytes(self, untimed_seconds: float) -> int | None:
        """Return the memory of the process and its descendants.

        See :meth:`ProcessTree.proportional_bytes`.
        """
        return self._tree.proportional_bytes(untimed_seconds) if self._tree else None

    def take(self, origin: float) -> Samples | None:
        """Return the samples since the process started, or since the last call.

        The result is None if there are none.

        Args:
            origin: clock reading that is time 0 of the record.
        """
        now = self._clock()
        if self._rows and now > self._rows[-1].time:
            self._add(now)
        rows = self._rows
        interval = self._interval
        self._begin(rows[-1:])
        return samples(rows, origin, interval)

    @property
    def latest(self) -> tuple[Row, ...]:
        """The latest rows, at most two, for a live display."""
        return tuple(self._rows[-2:])

    def _add(self, now: float) -> None:
        readers = self._readers
        usage = self._tree.usage() if self._tree else None
        joules = readers.cpu_joules()
        hertz = readers.cpu_hertz()
        gpus = readers.gpus()
        self._rows.append(
            Row(now, readers.cores(), usage, joules, hertz, gpus, time.process_time())
        )
        if len(self._rows) > self._most_rows:
            self._rows = self._rows[::2]
            self._interval *= 2

    def _begin(self, rows: list[Row]) -> None:
        self._rows = rows
        self._interval = self._first_interval
        self._due = rows[-1].time + self._interval if rows else self._clock()


def samples(rows: Sequence[Row], origin: float, interval: float) -> Samples | None:
    """Convert rows for a record.

    The first row has no shares, since those are of the time since the previous row.

    Columns without any value are left out.
    """
    if len(rows) < 2:
        return None
    pairs = list(itertools.pairwise(rows))
    gpus = max(len(row.gpus) for row in rows)

    def of_gpus(name: str) -> Any:
        table = []
        for row in rows:
            values = [getattr(gpu, name) for gpu in row.gpus]
            table.append(values + [None] * (gpus - len(values)))
        is_read = any(value is not None for value in itertools.chain.from_iterable(table))
        return table if is_read else None

    cores = [[_share(a, b, b.busy - a.busy) for a, b in _core_pairs(*pair)] for pair in pairs]
    return Samples(
        interval_seconds=interval,
        t=[row.time - origin for row in rows],
        cpu_percent=[[], *cores] if any(cores) else None,
        stolen_percent=_known([None, *(stolen_percent(*pair) for pair in pairs)]),
        tree_cpu_percent=_known([None, *(tree_percent(*pair) for pair in pairs)]),
        tree_resident_bytes=_known([row.tree and row.tree.resident_bytes for row in rows]),
        cpu_hertz=_known([row.cpu_hertz for row in rows]),
        cpu_joules=_known([row.cpu_joules for row in rows]),
        **{f"gpu_{field.name}": of_gpus(field.name) for field in dataclasses.fields(GpuReading)},
    )


def tree_percent(earlier: Row, later: Row) -> float | None:
    """Return the CPU usage of the process and its descendants between two rows, 100 per core.

    The result is None if a part was lost.

    The time of a process that no parent waited for is lost when it ends, so the sum decreases.
    """
    seconds = later.time - earlier.time
    if earlier.tree is None or later.tree is None or seconds <= 0:
        return None
    used = later.tree.cpu_seconds - earlier.tree.cpu_seconds
    return 100 * used / seconds if used >= 0 else None


def stolen_percent(earlier: Row, later: Row) -> float | None:
    """Return the share of all cores' time that the host gave to other guests.

    This machine is a virtual one.
    """
    shares = [_share(a, b, b.stolen - a.stolen) for a, b in _core_pairs(earlier, later)]
    known = [share for share in shares if share is not None]
    return sum(known) / len(known) if known else None


def load_between(
    earlier: Row,
    later: Row,
    usable: Sequence[int],
    threads: int | None = None,
    idle_seconds: float = 0.0,
) -> dict[str, Any]:
    """Return the load of everything but the watched process and this one.

    Also returns how the watched process waited.

    Keys: fields of :class:`~trainmark.record.record.Slice`; None for what can't be read. Shares are
    slightly negative if the system's ticks are coarser than the time between the rows.

    Args:
        usable: numbers of the cores to include.
        threads: most threads of any side; None is the number of cores.
        idle_seconds: CPU time that paused sides used meanwhile.
    """
    seconds = later.time - earlier.time
    pairs = [pair for number, pair in enumerate(_core_pairs(earlier, later)) if number in usable]
    busy = _total(pairs, attrgetter("busy"))
    stolen = _total(pairs, attrgetter("stolen"))
    tree = tree_percent(earlier, later)
    capacity = len(pairs) * seconds
    own = later.own_seconds - earlier.own_seconds
    others = None
    if busy is not None and tree is not None:
        others = busy * seconds - tree * seconds / 100 - own - idle_seconds
    before = earlier.waits
    after = later.waits

    def rate(before: float | None, after: float | None) -> float | None:
        return None if before is None or after is None else max(after - before, 0.0) / seconds

    return {
        "others_share": None if others is None else others / capacity,
        "stolen_share": None if stolen is None else stolen / len(pairs),
        "spare_share": max(len(usable) - threads, 0) / len(usable) if threads else 0.0,
        "idle_share": idle_seconds / capacity if capacity else None,
        "queued": rate(before.seconds, after.seconds) if before and after else None,
        "switches": rate(before.switches, after.switches) if before and after else None,
        "pressure": rate(earlier.pressure, later.pressure),
    }


def _total(pairs: Sequence[tuple[Core, Core]], of: Callable[[Core], float]) -> float | None:
    """Return their time as a number of cores; None if none was read."""
    shares = [_share(a, b, of(b) - of(a)) for a, b in pairs]
    known = [share for share in shares if share is not None]
    return sum(known) / 100 if known else None


def _core_pairs(earlier: Row, later: Row) -> list[tuple[Core, Core]]:
    """Pair up the cores of both rows; none if a core was switched on or off."""
    before = earlier.cores or ()
    after = later.cores or ()
    return list(zip(before, after, strict=True)) if len(before) == len(after) else []


def _share(earlier: Core, later: Core, part: float) -> float | None:
    """Return the percentage of the time between two readings.

    It is limited, since a core's counters don't change at once.
    """
    passed = later.total - earlier.total
    return min(max(100 * part / passed, 0.0), 100.0) if passed > 0 else None


def _known(column: list[Any]) -> list[Any] | None:
    return column if any(value is not None for value in column) else None
