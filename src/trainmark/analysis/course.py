"""How a group's runs went: what every epoch took, and what had been learnt by its end."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from trainmark.analysis.results import MedianInterval
from trainmark.analysis.statistics import median
from trainmark.record.record import Epoch, Record

_FIGURES = ("evaluation_seconds", "train_loss", "train_accuracy", "test_loss", "test_accuracy")


@dataclass(frozen=True)
class Station:
    """The end of an epoch; medians over the runs that came there.

    Args:
        epoch: its number, from 1.
        seconds: that it took.
        elapsed_seconds: of training until its end, evaluation and compilation left out.
    """

    epoch: int
    seconds: MedianInterval
    elapsed_seconds: float
    evaluation_seconds: float | None
    train_loss: float | None
    train_accuracy: float | None
    test_loss: float | None
    test_accuracy: float | None


def course(records: Sequence[Record]) -> tuple[Station, ...]:
    """Of runs that are repeats of each other, epoch by epoch."""
    elapsed = [[*itertools.accumulate(epoch.seconds for epoch in record.epochs)] for record in records]
    longest = max((len(record.epochs) for record in records), default=0)
    stations = []
    for index in range(longest):
        there = [record.epochs[index] for record in records if index < len(record.epochs)]
        stations.append(
            Station(
                epoch=index + 1,
                seconds=MedianInterval.of([epoch.seconds for epoch in there]),
                elapsed_seconds=median([each[index] for each in elapsed if index < len(each)]) or 0.0,
                **{name: _middle(there, name) for name in _FIGURES},
            )
        )
    return tuple(stations)


def seconds_to(record: Record, accuracy: float) -> float | None:
    """Seconds of training until the end of the first epoch with such a test accuracy; None where there was none."""
    elapsed = 0.0
    for epoch in record.epochs:
        elapsed += epoch.seconds
        if epoch.test_accuracy is not None and epoch.test_accuracy >= accuracy:
            return elapsed
    return None


def _middle(epochs: Sequence[Epoch], quantity: str) -> float | None:
    return median([value for epoch in epochs if (value := getattr(epoch, quantity)) is not None])
