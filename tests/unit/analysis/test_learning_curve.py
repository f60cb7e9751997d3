"""The duration of epochs, and the results at their ends."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from tests.records import a_record
from trainmark.analysis.learning_curve import learning_curve, seconds_to
from trainmark.record.record import Epoch, Record


def learning(*accuracies: float | None, seconds: float = 2.0, **changes: object) -> Record:
    epochs = [
        Epoch(index, index * seconds, seconds, 10, 100, test_accuracy=accuracy)
        for index, accuracy in enumerate(accuracies)
    ]
    return a_record(epochs=epochs, **changes)  # type: ignore[arg-type]


def test_summaries_are_medians_over_the_runs_that_got_there() -> None:
    runs = [
        learning(0.8, 0.9, seconds=each, round=number)
        for number, each in enumerate((1.0, 2.0, 4.0))
    ]
    longer = learning(0.7, 0.8, 0.95, seconds=8.0, round=3)
    summaries = learning_curve([*runs, longer])
    assert [each.epoch for each in summaries] == [1, 2, 3]
    assert [each.seconds.median for each in summaries] == [3.0, 3.0, 8.0]
    assert summaries[1].elapsed_seconds == 6.0
    assert summaries[2].elapsed_seconds == 24.0
    assert summaries[2].test_accuracy == 0.95
    assert summaries[0].seconds.low == 1.0
    assert summaries[0].train_loss is None


def test_without_runs_there_is_no_learning_curve() -> None:
    assert learning_curve([]) == ()
    assert learning_curve([learning()]) == ()


@pytest.mark.parametrize(
    ("accuracy", "seconds"), [(0.5, 2.0), (0.85, 4.0), (0.9, 4.0), (0.95, None)]
)
def test_the_time_to_an_accuracy_ends_with_its_epoch(
    accuracy: float, seconds: float | None
) -> None:
    assert seconds_to(learning(0.8, 0.9, 0.88), accuracy) == seconds


def test_an_epoch_that_was_not_tested_reaches_nothing() -> None:
    assert seconds_to(learning(None, 0.9), 0.5) == 4.0
    assert dataclasses.is_dataclass(learning_curve([learning(None)])[0])
    assert msgspec.to_builtins(learning_curve([learning(None)])[0])["test_accuracy"] is None
