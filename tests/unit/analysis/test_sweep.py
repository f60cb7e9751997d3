from __future__ import annotations

import math

from tests.records import a_record, a_trial
from trainmark.analysis.sweep import Sweep, sweeps
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record


def of(*records: Record) -> Sweep:
    (found,) = sweeps(records)
    return found


def order(*records: Record) -> list[int]:
    return [trial.trial for trial in of(*records).trials]


def test_the_most_accurate_is_best() -> None:
    found = of(
        a_trial(1, test_accuracy=0.9),
        a_trial(2, test_accuracy=0.95),
        a_trial(3, test_accuracy=0.92),
    )
    assert [trial.trial for trial in found.trials] == [2, 3, 1]
    assert found.best == 2
    assert found.trials[0].values == {"learning_rate": 0.05, "hidden": 32}


def test_ties_go_to_the_smaller_loss_then_to_the_earlier_trial() -> None:
    assert order(
        a_trial(1, test_loss=0.2), a_trial(2, test_loss=0.1), a_trial(3, test_loss=0.2)
    ) == [2, 1, 3]


def test_what_is_no_number_or_not_known_is_never_best() -> None:
    nan = a_trial(1, test_accuracy=math.nan)
    unknown = a_trial(2, test_accuracy=None)
    assert order(nan, unknown, a_trial(3, test_accuracy=0.1)) == [3, 1, 2]
    assert order(a_trial(1, test_loss=math.nan), a_trial(2, test_loss=5.0)) == [2, 1]


def test_an_unfinished_trial_comes_last_whatever_its_accuracy() -> None:
    diverged = a_trial(1, test_accuracy=0.99, status="diverged")
    found = of(diverged, a_trial(2, test_accuracy=0.5))
    assert [trial.outcome for trial in found.trials] == ["ok", "diverged"]
    assert of(diverged).best is None


def test_a_trial_stopped_early_comes_after_complete_ones() -> None:
    stopped = a_trial(1, test_accuracy=0.99, caveats=[Caveat.STOPPED_EARLY])
    assert order(stopped, a_trial(2, test_accuracy=0.5)) == [2, 1]


def test_a_trial_that_was_done_again_counts_once() -> None:
    failed = a_trial(1, status="failed", test_accuracy=None, created="2026-11-21T10:00:00Z")
    done = a_trial(1, test_accuracy=0.9, created="2026-11-21T11:00:00Z")
    failed_again = a_trial(1, status="failed", test_accuracy=None, created="2026-11-21T12:00:00Z")
    for records in (
        (failed, done),
        (done, failed),
        (done, failed_again),
        (failed, done, failed_again),
    ):
        (trial,) = of(*records).trials
        assert (trial.outcome, trial.test_accuracy) == ("ok", 0.9)


def test_the_grid_is_what_the_trials_have_numbers_by_size() -> None:
    values = [
        {"learning_rate": rate, "batch_size": size}
        for rate in (0.1, 0.01)
        for size in ("full", 100)
    ]
    found = of(*(a_trial(number, each) for number, each in enumerate(values, 1)))
    assert found.grid == {"learning_rate": (0.01, 0.1), "batch_size": ("full", 100)}


def test_each_sweep_has_its_trials_and_other_records_are_ignored() -> None:
    records = [a_trial(1, group="late", round=5), a_trial(1, group="early"), a_record()]
    assert [found.trials[0].record for found in sweeps(records)] == ["early-t1-ok", "late-t1-ok"]
    assert sweeps([a_record()]) == []


def test_trials_that_trained_at_the_same_time_are_known() -> None:
    assert not of(a_trial(1)).side_by_side
    found = of(a_trial(1), a_trial(2, caveats=[Caveat.SIDE_BY_SIDE], machine="other"))
    assert found.side_by_side and found.machines == ("lab", "other")
