"""Explain why two runs took different times: everything that differs, or noise if nothing does."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainmark.analysis.differences import UNKNOWN
from trainmark.analysis.statistics import mean
from trainmark.record.facts import FACTS
from trainmark.record.record import Epoch, Record

CLOCKS_APART = 0.03
"""Mean clocks that differ by less count as equal."""


@dataclass(frozen=True)
class Contrast:
    """One difference between two runs."""

    what: str
    a: str
    b: str


@dataclass(frozen=True)
class TwoRecords:
    """A comparison of two runs.

    Args:
        ratio: seconds per example in a / in b, of steady epochs; above 1, b is faster; None if one
            has no epoch.
        spread: slowest / fastest steady epoch within one run, of the run where it is larger.
        contrasts: differences that affect speed or arithmetic, the most likely causes first.
        noise: whether nothing differs and the ratio is no larger than the spread within a run.
    """

    ratio: float | None
    spread: float | None
    contrasts: tuple[Contrast, ...]
    noise: bool


def set_against(a: Record, b: Record) -> TwoRecords:
    """Return the differences between two runs."""
    contrasts = list(_of_facts(a, b))
    # Settings that only one of two backends has are not differences.
    only_shared = a.backend.name != b.backend.name
    settings = (_not_said(a.backend.settings), _not_said(b.backend.settings))
    contrasts += _of_dictionaries("setting", *settings, only_shared)
    contrasts += _of_dictionaries("version of", a.python.packages, b.python.packages, only_shared)
    contrasts += _clocks(a, b)
    paces = _paces(a, b)
    ratio = statistics.median(paces[0]) / statistics.median(paces[1]) if all(paces) else None
    spread = max((max(pace) / min(pace) for pace in paces if len(pace) > 1), default=None)
    apart = None if ratio is None else max(ratio, 1 / ratio)
    noise = not contrasts and apart is not None and spread is not None and apart <= spread
    return TwoRecords(ratio, spread, tuple(contrasts), noise)


def _of_facts(a: Record, b: Record) -> Iterator[Contrast]:
    for fact in FACTS.values():
        first = fact.text(a)
        second = fact.text(b)
        # A run that ended early may not know its own fact; that is no difference.
        is_known = fact.machine or (first and second)
        if fact.title and first != second and is_known:
            yield Contrast(fact.title, first or UNKNOWN, second or UNKNOWN)


def _paces(a: Record, b: Record) -> tuple[list[float], list[float]]:
    """Return known seconds of both: per example, else per epoch, else of the whole process."""
    for of in (_of_examples, _of_epochs, _of_process):
        first = of(a)
        second = of(b)
        if first and second:
            return first, second
    return [], []


def _steady(record: Record) -> list[Epoch]:
    return [epoch for epoch in record.epochs[1:] or record.epochs if 0 < epoch.seconds < math.inf]


def _of_examples(record: Record) -> list[float]:
    steady = [(epoch.seconds, epoch.examples) for epoch in _steady(record)]
    return [seconds / examples for seconds, examples in steady if examples and examples > 0]


def _of_epochs(record: Record) -> list[float]:
    return [epoch.seconds for epoch in _steady(record)]


def _of_process(record: Record) -> list[float]:
    seconds = record.process.seconds if record.process else None
    return [seconds] if seconds is not None and 0 < seconds < math.inf else []


def _not_said(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that are not among the facts already."""
    titles = {fact.title for fact in FACTS.values() if fact.machine}
    return {name: value for name, value in settings.items() if name not in titles}


def _of_dictionaries(
    what: str, a: dict[str, Any], b: dict[str, Any], only_shared: bool
) -> list[Contrast]:
    names = sorted(a.keys() & b.keys() if only_shared else a.keys() | b.keys())
    every = (
        Contrast(f"{what} {name}", str(a.get(name, UNKNOWN)), str(b.get(name, UNKNOWN)))
        for name in names
    )
    return [each for each in every if each.a != each.b]


def _clocks(a: Record, b: Record) -> Iterator[Contrast]:
    """Yield the mean clocks of the CPU and the training GPU, if both were read and differ."""
    for what, of in (("CPU clock", _cpu_hertz), ("GPU clock", _gpu_hertz)):
        first = of(a)
        second = of(b)
        if first and second and abs(first / second - 1) > CLOCKS_APART:
            yield Contrast(what, f"{first / 1e6:,.0f} MHz", f"{second / 1e6:,.0f} MHz")


def _cpu_hertz(record: Record) -> float | None:
    return mean(record.samples.cpu_hertz if record.samples else None)


def _gpu_hertz(record: Record) -> float | None:
    gpu = record.device.gpu
    samples = record.samples
    if gpu is None or samples is None or samples.gpu_sm_hertz is None:
        return None
    return mean([row[gpu] for row in samples.gpu_sm_hertz if gpu < len(row)])
