"""Runs that a later command completed: the same plan at another time."""

from __future__ import annotations

import msgspec
import pytest

from tests.records import a_record, rounds
from trainmark.analysis.comparison import compare
from trainmark.record.caveats import Caveat
from trainmark.record.record import Group, Record
from trainmark.workload import catalog


def test_the_same_round_of_another_session_is_not_paired() -> None:
    """A drift of the machine that both sides share cancels in pairs, and only there."""
    drifting = [1.0, 2.0, 4.0]
    together = compare(rounds(drifting) + rounds([time / 2 for time in drifting], backend="torch"))
    assert together.groups[1].speedup.verdict == "faster"
    later = rounds([time / 2 for time in drifting], backend="torch")
    apart = compare(rounds(drifting) + [_in_session(record, "later") for record in later])
    assert apart.groups[1].speedup.verdict == "unclear"
    assert Caveat.UNPAIRED in apart.groups[1].caveats


def test_a_failure_that_was_repeated_with_success_does_not_count() -> None:
    failed = a_record(round=1, status="failed")
    comparison = compare([a_record(round=0), failed, _in_session(a_record(round=1), "later")])
    assert comparison.groups[0].runs == 2
    assert comparison.groups[0].failed == 0


def test_a_continued_training_is_judged_by_where_it_arrived() -> None:
    """Its repeats are parts of one training, so their mean has no meaning."""
    workload = catalog.find("mnist-mlp512").with_schedule(protocol="continued")
    accuracies = [0.5, 0.9, 0.98]
    sides = [
        a_record(workload=workload, backend=backend, round=number, test_accuracy=accuracy + more)
        for backend, more in (("numpy", 0.0), ("torch", 0.001))
        for number, accuracy in enumerate(accuracies)
    ]
    learning = compare(sides).groups[1].learning
    assert learning.difference == pytest.approx(0.001)
    assert learning.low is None and learning.verdict == "unclear"


def _in_session(record: Record, session: str) -> Record:
    return msgspec.structs.replace(record, group=Group("plan-1", session))
