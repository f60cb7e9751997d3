"""What disturbed a run, as far as the samples taken during its training show."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence

from trainmark.measure.energy import gpu_column, training_windows
from trainmark.record.caveats import BUSY_SHARE, Caveat
from trainmark.record.record import Epoch, Samples

STOLEN_PERCENT = 2.0
"""Share of the cores' time above which the host of a virtual machine counts as busy with other
guests."""

DRIFT_SHARE = 0.05
"""Drop of the frequency between the first and the last quarter of the training."""

WITHIN = 0.8
"""Share of the time between two rows that must be training. For interleaved sides, rows are just
outside each turn."""

_SPANNED = 8
"""Most training windows between two rows, since there are rows at the edges of each turn."""

_FEWEST_FOR_DRIFT = 8


def noise(
    epochs: Sequence[Epoch],
    samples: Samples | None,
    *,
    cores: Sequence[int],
    on_cpu: bool,
    gpu: int | None,
    slowdown_bits: int,
) -> set[Caveat]:
    """Return the caveats that follow from the samples of a run.

    Args:
        epochs: epochs of the run; only samples during them count.
        samples: sampled during it.
        cores: numbers of the cores that it may use; load on other cores does not disturb it.
        on_cpu: whether its device is the CPU.
        gpu: column of its device; None for a CPU or if unknown.
        slowdown_bits: throttle reasons of its vendor that are a defect.
    """
    if samples is None:
        return set()
    during = _rows_in_training(epochs, samples)
    own_clock = None
    if on_cpu:
        own_clock = samples.cpu_hertz
    elif gpu is not None:
        own_clock = gpu_column(samples.gpu_sm_hertz, gpu)
    throttle_bits = (
        [] if gpu is None else _known(gpu_column(samples.gpu_throttle_bits, gpu), during)
    )
    holds = {
        Caveat.BUSY_MACHINE: _others_percent(samples, during, cores) > 100 * BUSY_SHARE,
        Caveat.STOLEN_TIME: _mean(samples.stolen_percent, during) > STOLEN_PERCENT,
        Caveat.CLOCK_DRIFT: _drifts(own_clock, during),
        Caveat.THROTTLED: any(int(bits) & slowdown_bits for bits in throttle_bits),
    }
    return {caveat for caveat, applies in holds.items() if applies}


def _rows_in_training(epochs: Sequence[Epoch], samples: Samples) -> list[int]:
    """Return the rows for which the time since the previous row is almost entirely training."""
    windows = training_windows(epochs)
    found = []
    first = 0
    for index, (before, now) in enumerate(itertools.pairwise(samples.t), 1):
        while first < len(windows) and windows[first][1] <= before:
            first += 1
        trained = sum(
            max(min(end, now) - max(start, before), 0.0)
            for start, end in windows[first : first + _SPANNED]
        )
        if trained >= WITHIN * (now - before) > 0:
            found.append(index)
    return found


def _others_percent(samples: Samples, during: Iterable[int], cores: Sequence[int]) -> float:
    """Return the percentage of these cores that other processes used; 0 if unknown."""
    if samples.cpu_percent is None or samples.tree_cpu_percent is None:
        return 0.0
    others = []
    for index in during:
        seen = samples.cpu_percent[index]
        tree = samples.tree_cpu_percent[index]
        busy = [seen[core] for core in cores if core < len(seen)]
        known = [percent for percent in busy if percent is not None]
        if known and tree is not None:
            others.append((sum(known) - tree) / len(known))
    return statistics.fmean(others) if others else 0.0


def _drifts(hertz: Sequence[float | None] | None, during: Sequence[int]) -> bool:
    known = _known(hertz, during)
    quarter = len(known) // 4
    if len(known) < _FEWEST_FOR_DRIFT:
        return False
    first = statistics.fmean(known[:quarter])
    last = statistics.fmean(known[-quarter:])
    return last < first * (1 - DRIFT_SHARE)


def _mean(column: Sequence[float | None] | None, during: Iterable[int]) -> float:
    known = _known(column, during)
    return statistics.fmean(known) if known else 0.0


def _known(column: Sequence[float | None] | None, during: Iterable[int]) -> list[float]:
    if column is None:
        return []
    values = [column[index] for index in during]
    return [value for value in values if value is not None]
