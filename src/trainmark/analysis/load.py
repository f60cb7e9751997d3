"""The utilisation during one run, in as many windows as a chart can show."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from trainmark.analysis.statistics import mean
from trainmark.analysis.summary import summarize
from trainmark.record.record import Record, Samples

MOST_WINDOWS = 120
"""Maximum number of windows, which is as many as a chart can show."""
FEWEST_WINDOWS = 24
"""Minimum number of windows, even if a machine has very many cores."""
MOST_CELLS = 4_000
"""Maximum number of windows times cores, so that a chart stays readable."""

_Column = Sequence[float | None]


@dataclass(frozen=True)
class Window:
    """Means over a time window, on the record's clock; None if nothing was read.

    Args:
        cores: utilisation of every core, in percent.
        tree_cpu: CPU time of the run's processes, in percent of a core.
        resident_bytes: resident memory of these processes.
        gpus: percent of time with a kernel running, by GPU; the other fields have their memory and
            power.
    """

    start: float
    end: float
    cores: tuple[float | None, ...]
    tree_cpu: float | None
    resident_bytes: float | None
    gpus: tuple[float | None, ...]
    gpu_memory_bytes: tuple[float | None, ...]
    gpu_watts: tuple[float | None, ...]


@dataclass(frozen=True)
class Load:
    """The sampled utilisation of one run.

    Args:
        rows: number of samples in the record; if there are fewer windows, they are means.
    """

    record: Record
    windows: tuple[Window, ...]
    rows: int


def load_of(records: Sequence[Record]) -> Load | None:
    """Return the load of the sampled run whose epochs are nearest to the median, if any."""
    known = []
    for record in records:
        if record.samples is None or len(record.samples.t) <= 1:
            continue
        run = summarize(record)
        seconds = run.process_seconds if run.epoch_seconds is None else run.epoch_seconds
        if seconds is not None:
            known.append((record, seconds))
    if not known:
        return None
    middle = statistics.median_low([seconds for _, seconds in known])
    record = next(record for record, seconds in known if seconds == middle)
    assert record.samples is not None
    cores = max((len(line) for line in record.samples.cpu_percent or ()), default=1)
    most = max(FEWEST_WINDOWS, min(MOST_WINDOWS, MOST_CELLS // max(cores, 1)))
    rows = len(record.samples.t)
    each = -(-rows // most)
    windows = (
        _window(record.samples, first, min(first + each, rows)) for first in range(0, rows, each)
    )
    return Load(record, tuple(windows), rows)


def _window(samples: Samples, first: int, last: int) -> Window:
    start = samples.t[first - 1] if first else samples.t[0] - samples.interval_seconds
    return Window(
        start=max(start, 0.0),
        end=samples.t[last - 1],
        cores=_means(samples.cpu_percent, first, last),
        tree_cpu=mean((samples.tree_cpu_percent or ())[first:last]),
        resident_bytes=mean((samples.tree_resident_bytes or ())[first:last]),
        gpus=_means(samples.gpu_percent, first, last),
        gpu_memory_bytes=_means(samples.gpu_memory_bytes, first, last),
        gpu_watts=_means(samples.gpu_watts, first, last),
    )


def _means(table: Sequence[_Column] | None, first: int, last: int) -> tuple[float | None, ...]:
    """Return the mean of each column; missing entries of shorter rows are skipped."""
    lines = (table or ())[first:last]
    width = max((len(line) for line in lines), default=0)
    return tuple(
        mean([line[column] for line in lines if column < len(line)]) for column in range(width)
    )
