"""The smallest difference that a machine can detect, from rounds that compare two equal sides."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainmark.analysis.comparison import by_slices
from trainmark.analysis.slices import compare_slices, deviations
from trainmark.analysis.statistics import (
    FEWEST_FOR_INTERVAL,
    SLICES_CONFIDENCE,
    Estimate,
    SpeedVerdict,
)
from trainmark.analysis.student import t_quantile
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record

POWER = 0.8
"""Share of comparisons that detect the smallest difference."""
HORIZONS = (60.0, 600.0, 3600.0)
"""Measurement times, in seconds, for which the smallest difference is reported."""


@dataclass(frozen=True)
class Smallest:
    """The smallest difference that 80 % of comparisons of this many seconds detect.

    Args:
        rounds: number of rounds with undisturbed blocks in that time.
    """

    seconds: float
    rounds: int
    difference: float | None


@dataclass(frozen=True)
class Noise:
    """The noise between two equal sides.

    Its field names are the keys of ``trainmark noise --json``.

    Args:
        side: framework with its version, style, precision and device.
        machine: model of the CPU.
        cores: number of usable cores.
        python, trainmark: their versions.
        date: day on which the first round was measured (UTC), such as ``2026-11-24``.
        rounds: number of rounds.
        kept: number of rounds with at least one undisturbed block.
        disturbed: number of blocks that are excluded.
        withheld: whether other processes disturbed too much for a verdict.
        others, stolen: mean share of the cores' time that other processes and this virtual
            machine's host took.
        seconds: duration of all rounds.
        round_seconds: mean duration of a round, including the start of its processes.
        ratio: ratio of the two sides; its true value is 1.
        between_processes: standard deviation of the ratio between pairs of processes, as a
            fraction.
        between_blocks: likewise, between blocks of a pair of processes.
        smallest: smallest detectable differences for a minute, ten minutes and an hour.
    """

    workload: str
    side: str
    threads: int | None
    machine: str
    cores: int | None
    python: str | None
    trainmark: str | None
    date: str
    rounds: int
    kept: int
    blocks: int
    disturbed: int
    withheld: bool
    others: float | None
    stolen: float | None
    seconds: float
    round_seconds: float
    ratio: Estimate
    verdict: SpeedVerdict
    between_processes: float | None
    between_blocks: float | None
    smallest: tuple[Smallest, ...]


def noise_of(
    one: Sequence[Record], other: Sequence[Record], seconds: float, margin: float
) -> Noise | None:
    """Return the noise in the records of two equal sides; None if they share no block.

    Args:
        seconds: duration of all rounds.
    """
    sliced = compare_slices(one, other)
    if sliced is None:
        return None
    speedup, caveats = by_slices(sliced, margin, SLICES_CONFIDENCE, learns=True)
    first = one[0]
    every = len(sliced.rounds)
    kept = len(sliced.kept)
    slices = list(itertools.chain.from_iterable(record.slices for record in (*one, *other)))
    found = deviations(sliced.ratios)
    spread = statistics.stdev(sliced.kept) if len(sliced.kept) >= FEWEST_FOR_INTERVAL else None
    return Noise(
        workload=first.workload.name,
        side=_side(first),
        threads=first.threads,
        machine=first.machine.cpu or first.machine.name,
        cores=first.machine.usable_cores,
        python=first.python.version,
        trainmark=first.trainmark,
        date=min(record.created for record in one)[: len("2026-11-24")],
        rounds=every,
        kept=kept,
        blocks=sliced.blocks,
        disturbed=sliced.disturbed,
        withheld=Caveat.TOO_DISTURBED in caveats,
        others=_mean(each.others_share for each in slices),
        stolen=_mean(each.stolen_share for each in slices),
        seconds=seconds,
        round_seconds=seconds / every,
        ratio=Estimate(speedup.ratio or math.nan, speedup.low, speedup.high),
        verdict=speedup.verdict,
        between_processes=None if found is None else found.between,
        between_blocks=None if found is None else found.within,
        smallest=tuple(
            _smallest(spread, horizon, horizon * kept / seconds) for horizon in HORIZONS
        ),
    )


def _side(record: Record) -> str:
    backend = record.backend
    device = record.device
    model = f"({device.name})" if device.kind == "accelerator" and device.name else None
    of_backend = (backend.name, backend.version, backend.style, backend.precision)
    return " ".join(filter(None, (*of_backend, device.id, model)))


def _smallest(spread: float | None, seconds: float, rounds: float) -> Smallest:
    return Smallest(seconds, math.floor(rounds), smallest_difference(spread, rounds))


def _mean(shares: Iterable[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return max(statistics.fmean(known), 0.0) if known else None  # ticks can be a few percent off


def smallest_difference(spread: float | None, rounds: float) -> float | None:
    """Return the difference that this many rounds detect; None if they are too few.

    Args:
        spread: standard deviation of their log ratios.
        rounds: number of rounds.
    """
    if spread is None or rounds < FEWEST_FOR_INTERVAL:
        return None
    degrees = math.floor(rounds) - 1
    error = spread / math.sqrt(math.floor(rounds))
    found = t_quantile(SLICES_CONFIDENCE, degrees) + t_quantile(2 * POWER - 1, degrees)
    return math.expm1(found * error)
