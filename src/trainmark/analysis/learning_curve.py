"""The learning curves of a group's runs: the duration of every epoch, and the results after it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from trainmark.analysis.results import MedianInterval
from trainmark.analysis.statistics import median
from trainmark.record.record import Record

_FIGURES = ("evaluation_seconds", "train_loss", "train_accuracy", "test_loss", "test_accuracy")


@dataclass(frozen=True)
class EpochSummary:
    """The end of an epoch; medians over the runs that reached it.

    Args:
        epoch: number of the epoch, from 1.
        seconds: duration of the epoch.
        elapsed_seconds: training time until its end, without evaluation and compilation.
    """

    epoch: int
    seconds: MedianInterval
    elapsed_seconds: float
    evaluation_seconds: float | None
    train_loss: float | None
    train_accuracy: float | None
    test_loss: float | None
    test_accuracy: float | None


def learning_curve(records: Sequence[Record]) -> tuple[EpochSummary, ...]:
    """Summarise runs that are repeats of each other, epoch by epoch."""
    elapsed = [
        [*itertools.accumulate(epoch.seconds for epoch in record.epochs)] for record in records
    ]
    longest = max((len(record.epochs) for record in records), default=0)
    summaries = []
    for index in range(longest):
        there = [record.epochs[index] for record in records if index < len(record.epochs)]
        summaries.append(
            EpochSummary(
                epoch=index + 1,
                seconds=MedianInterval.of([epoch.seconds for epoch in there]),
                elapsed_seconds=median(each[index] for each in elapsed if index < len(each)) or 0.0,
                **{name: median(getattr(epoch, name) for epoch in there) for name in _FIGURES},
            )
        )
    return tuple(summaries)


def seconds_to(record: Record, accuracy: float) -> float | None:
    """Return the training seconds to the end of the first epoch with this accuracy, if any."""
    elapsed = itertools.accumulate(epoch.seconds for epoch in record.epochs)
    for epoch, seconds in zip(record.epochs, elapsed, strict=True):
        if epoch.test_accuracy is not None and epoch.test_accuracy >= accuracy:
            return seconds
    return None
