"""Observations of a command from outside: its utilisation, waiting, and start-up time.

These are observations, not causes, since no component is removed to see what that saves.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark import units
from trainmark.analysis.statistics import mean
from trainmark.analysis.summary import steady_epochs
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record, Samples

_IDLE_SHARE = 0.25
"""Share of the cores below which a command is idle, and of waiting above which it matters."""
_GROWTH = 1.2
"""Ratio of memory at the end to that at the first quarter, from which on it counts as growing."""
_FEWEST_ROWS = 8
"""Fewest samples, after the first quarter, that show whether the memory grows."""
_ADVICE = (
    "more workers or prefetching, cheaper preparation, or data prepared once and kept in "
    "memory would help"
)


@dataclass(frozen=True)
class Observation:
    """One observation.

    Args:
        what: name.
        value: a fraction or a ratio, according to ``unit``.
        words: its meaning, for the user.
    """

    what: str
    value: float
    unit: str
    words: str


def observe(record: Record) -> tuple[Observation, ...]:
    """Return all observations of ``record``, the most informative first."""
    return (
        *_waiting(record),
        *_start_up(record),
        *_busy(record),
        *_gpu(record),
        *_memory(record),
    )


def _start_up(record: Record) -> Iterator[Observation]:
    process = record.process
    if process is None or not process.seconds or not record.epochs or process.start_seconds is None:
        return
    inside = sum(epoch.seconds + (epoch.evaluation_seconds or 0.0) for epoch in record.epochs)
    share = max(1 - inside / process.seconds, 0.0)
    first, *others = (epoch.seconds for epoch in record.epochs)
    longer = first - statistics.median(others) if others else 0.0
    words = "share of the command outside epochs and evaluation: imports, reading data, saving"
    if longer > _IDLE_SHARE * first:
        words += (
            f"; the first epoch took {units.seconds(longer)} more than the others, which "
            "may also be start-up"
        )
    yield Observation("start-up", share, "share", f"{words}.")


def _waiting(record: Record) -> Iterator[Observation]:
    share = _waiting_share(record)
    if share is not None:
        verdict = "the loader keeps up"
        if share > _IDLE_SHARE:
            verdict = f"the loader is the bottleneck; {_ADVICE}"
        words = f"share of the steady epochs spent waiting for batches: {verdict}."
        yield Observation("data wait", share, "share", words)


def _waiting_share(record: Record) -> float | None:
    """Return the share of the steady epochs that a command reported to have waited for batches."""
    epochs = [each for each in steady_epochs(record.epochs) if each.data_wait_seconds is not None]
    total = sum(each.seconds for each in epochs)
    return sum(each.data_wait_seconds or 0.0 for each in epochs) / total if total else None


def _busy(record: Record) -> Iterator[Observation]:
    samples = record.samples
    machine = record.machine
    if samples is None or samples.tree_cpu_percent is None or not machine.usable_cores:
        return
    cores = min(machine.usable_cores, machine.cpu_quota or math.inf)
    percent = mean([samples.tree_cpu_percent[row] for row in _while_it_ran(record, samples)])
    if percent is None:
        return
    used = percent / 100
    share = used / cores
    if (_waiting_share(record) or 0.0) > _IDLE_SHARE:
        words = f"{used:.1f} of {cores:g} cores busy: the training waits for its loader."
    elif Caveat.BUSY_MACHINE in record.caveats:
        words = (
            f"{used:.1f} of {cores:g} cores busy; other programs used the machine, so the "
            "bottleneck is unclear."
        )
    elif share >= 1 - _IDLE_SHARE:
        words = f"{used:.1f} of {cores:g} cores busy: CPU-bound."
    elif used > 1 - _IDLE_SHARE and used < 1.25 and cores > 1:
        words = f"{used:.1f} of {cores:g} cores busy: one thread does the work."
    elif share < _IDLE_SHARE:
        words = (
            f"{used:.1f} of {cores:g} cores busy: the CPU is mostly idle, so it waits for "
            "something else."
        )
    else:
        words = f"{used:.1f} of {cores:g} cores busy."
    yield Observation("CPU", share, "share", words)


def _gpu(record: Record) -> Iterator[Observation]:
    samples = record.samples
    gpu = record.device.gpu
    if Caveat.THROTTLED in record.caveats:
        words = "the device lowered its clocks because of heat or a power limit."
        yield Observation("throttling", 1.0, "seen", words)
    if samples is None or gpu is None or samples.gpu_percent is None:
        return
    rows = [samples.gpu_percent[row] for row in _while_it_ran(record, samples)]
    busy = mean([row[gpu] for row in rows if gpu < len(row)])
    if busy is None:
        return
    gap = 1 - busy / 100
    verdict = "the GPU waits for the host" if gap > _IDLE_SHARE else "the GPU is kept busy"
    words = f"share of the time without a running kernel: {verdict}."
    yield Observation("GPU gaps", gap, "share", words)


def _memory(record: Record) -> Iterator[Observation]:
    samples = record.samples
    if samples is None or samples.tree_resident_bytes is None:
        return
    read = (samples.tree_resident_bytes[row] for row in _while_it_ran(record, samples))
    sizes = [size for size in read if size]
    steady = sizes[len(sizes) // 4 :]
    if len(steady) < _FEWEST_ROWS:
        return
    quarter = len(steady) // 4
    grown = statistics.median(steady[-quarter:]) / statistics.median(steady[:quarter])
    verdict = "it stays about the same."
    if grown > _GROWTH:
        verdict = "it grows during training: a leak or a cache."
    words = f"memory at the end / memory after the start: {verdict}"
    yield Observation("memory growth", grown, "times", words)


def _while_it_ran(record: Record, samples: Samples) -> list[int]:
    """Return the rows of samples within epochs; without epochs, those within the process."""
    process = record.process
    windows = [
        (epoch.start_seconds, epoch.start_seconds + epoch.seconds) for epoch in record.epochs
    ]
    if not windows and process is not None and process.start_seconds is not None:
        length = math.inf if process.seconds is None else process.seconds
        windows = [(process.start_seconds, process.start_seconds + length)]
    # A row's shares cover the time since the previous row.
    return [
        row
        for row in range(1, len(samples.t))
        if any(start <= samples.t[row - 1] and samples.t[row] <= end for start, end in windows)
    ]
