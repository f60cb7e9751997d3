"""Energy and cost of the training epochs, without start-up, compilation and evaluation."""

from __future__ import annotations

from dataclasses import dataclass

from trainmark.analysis.statistics import median
from trainmark.record.record import Record

_SECONDS_AN_HOUR = 3600
"""Seconds of an hour, since prices are per hour."""
_MILLION = 1e6


@dataclass(frozen=True)
class Cost:
    """Medians over the runs of a group; None if unknown.

    Args:
        joules: energy of a run.
        source: source of the joules.
        joules_per_million_samples: energy per million training examples, counting each use.
        money: cost of a run, in the currency of the price.
        money_per_million_samples: cost per million training examples.
        price_per_hour: the given price, if it is the same for all runs.
    """

    joules: float | None = None
    source: str | None = None
    joules_per_million_samples: float | None = None
    money: float | None = None
    money_per_million_samples: float | None = None
    price_per_hour: float | None = None


def cost(records: tuple[Record, ...]) -> Cost:
    """Return the cost of runs that are repeats of each other."""
    # The figures of failed runs are incomplete.
    records = tuple(record for record in records if record.outcome.status == "ok")
    whole = [record for record in records if not (record.observed and record.observed.ended_early)]
    sources = {record.energy.source for record in records if record.energy is not None}
    prices = {record.price_per_hour for record in records}
    return Cost(
        joules=median(each.energy.joules for each in whole if each.energy),
        source=sources.pop() if len(sources) == 1 else None,
        joules_per_million_samples=median(
            _per_million(each.energy.joules, each) for each in records if each.energy
        ),
        money=median(map(_money, whole)),
        money_per_million_samples=median(_per_million(_money(each), each) for each in records),
        price_per_hour=prices.pop() if len(prices) == 1 else None,
    )


def _money(record: Record) -> float | None:
    seconds = record.final.training_seconds
    if seconds is None and record.process is not None:
        seconds = record.process.seconds
    if record.price_per_hour is None or seconds is None:
        return None
    return record.price_per_hour * seconds / _SECONDS_AN_HOUR


def _per_million(amount: float | None, record: Record) -> float | None:
    examples = sum(epoch.examples or 0 for epoch in record.epochs)
    return None if amount is None or not examples else amount / examples * _MILLION
