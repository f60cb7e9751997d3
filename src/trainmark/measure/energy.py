"""Joules of the training epochs, from counters that were read during them.

Counters are read a few times a second, so the edges of an epoch are between two readings and are
interpolated. An edge can be wrong by the energy of one interval; windows must be long enough to
make this negligible.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence

from trainmark.measure.vendor import Vendor
from trainmark.record.record import Energy, Epoch, Samples, Window

MOST_UNCERTAIN = 0.2
"""Largest allowed share of the training that is between its edges and the nearest readings."""

PAUSE_SHARE = 0.01
"""Longest pause between two epochs whose energy is counted together, as a share of the epoch."""
PAUSE_SECONDS = 0.05
"""The same in seconds; the shorter of both counts."""

RAPL = "RAPL, CPU packages"

Counter = Sequence[float | None]


def energy(
    epochs: Sequence[Epoch], samples: Samples | None, gpu: int | None, vendor: Vendor
) -> Energy | None:
    """Return the energy of the device during ``epochs``; None if it has no counter.

    ``joules`` is None if there is a counter, but the training was too short for it.

    Args:
        epochs: epochs of one run.
        samples: sampled during it.
        gpu: number of the GPU in the samples; None for the CPU.
        vendor: vendor of the GPU.
    """
    if samples is None or not epochs:
        return None
    counter, source = _counter(samples, gpu, vendor)
    if counter is None:
        return None
    if is_too_short(epochs, samples):
        return Energy(None, source)
    used = [_between(samples.t, counter, *window) for window in training_windows(epochs)]
    known = [joules for joules in used if joules is not None]
    return Energy(sum(known) if len(known) == len(used) else None, source)


def is_too_short(epochs: Sequence[Epoch], samples: Samples) -> bool:
    """Whether the training windows are too short for how rarely the counters are read.

    Interleaved sides have short windows, but the counters are read right before and after each.
    """
    windows = training_windows(epochs)
    edges = itertools.chain.from_iterable(windows)
    uncertain = sum(_gap(samples.t, edge) for edge in edges)
    return uncertain > MOST_UNCERTAIN * sum(end - start for start, end in windows)


def _gap(times: Sequence[float], moment: float) -> float:
    """Return the seconds from ``moment`` to the nearest reading."""
    after = bisect.bisect_left(times, moment)
    return min(
        (abs(time - moment) for time in times[max(after - 1, 0) : after + 1]), default=math.inf
    )


def training_windows(epochs: Sequence[Epoch]) -> list[tuple[float, float]]:
    """Return start and end of each stretch of training between pauses, such as an evaluation."""
    windows: list[tuple[float, float]] = []
    for epoch in epochs:
        for window in epoch.windows or [Window(epoch.start_seconds, epoch.seconds)]:
            start = window.start_seconds
            end = window.start_seconds + window.seconds
            longest_pause = min(PAUSE_SHARE * epoch.seconds, PAUSE_SECONDS)
            if windows and start - windows[-1][1] <= longest_pause:
                windows[-1] = (windows[-1][0], end)
            else:
                windows.append((start, end))
    return windows


def _counter(samples: Samples, gpu: int | None, vendor: Vendor) -> tuple[Counter | None, str]:
    """Return joules over time and their source."""
    if gpu is None:
        return samples.cpu_joules, RAPL
    joules = gpu_column(samples.gpu_joules, gpu)
    if joules is not None:
        return joules, vendor.energy_counter
    watts = gpu_column(samples.gpu_watts, gpu)
    return (None if watts is None else _integrated(samples.t, watts)), vendor.integrated_power


def gpu_column(
    table: Sequence[Sequence[float | None]] | None, gpu: int
) -> list[float | None] | None:
    """Return one GPU's values over time; None if there are none."""
    column = [line[gpu] if gpu < len(line) else None for line in table or ()]
    return column if any(value is not None for value in column) else None


def _integrated(times: Sequence[float], watts: Counter) -> list[float | None]:
    """Return joules since the first reading; None from the first missing reading on."""
    joules: list[float | None] = [0.0 if watts[0] is not None else None]
    for (start, before), (end, now) in itertools.pairwise(zip(times, watts, strict=True)):
        last = joules[-1]
        lost = last is None or before is None or now is None
        joules.append(None if lost else last + (end - start) * (before + now) / 2)  # type: ignore[operator]
    return joules


def _between(times: Sequence[float], counter: Counter, start: float, end: float) -> float | None:
    """Return the counter's increase; None if it was not read on both sides, or was reset."""
    first = _at(times, counter, start)
    last = _at(times, counter, end)
    if first is None or last is None or last < first:
        return None
    return last - first


def _at(times: Sequence[float], counter: Counter, moment: float) -> float | None:
    """Interpolate the counter at a moment between two readings; None outside them."""
    known = [(time, value) for time, value in zip(times, counter, strict=True) if value is not None]
    for (earlier, before), (later, after) in itertools.pairwise(known):
        if earlier <= moment <= later:
            return before + (after - before) * (moment - earlier) / (later - earlier)
    return None
