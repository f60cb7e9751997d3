"""``--fail-below``."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from tests.records import rounds
from tests.unit.analysis.test_slices import a_round
from trainmark.analysis.comparison import compare
from trainmark.analysis.fail_below import fail_below
from trainmark.analysis.results import Comparison
from trainmark.record.caveats import Caveat
from trainmark.record.record import Outcome


def test_only_the_upper_bound_can_miss_the_bar() -> None:
    slower = rounds([2.0, 2.2, 1.8], backend="torch")
    comparison = compare(rounds([1.0, 1.0, 1.0]) + slower)
    speedup = comparison.groups[1].speedup
    assert speedup.ratio is not None
    assert speedup.high is not None
    between = (speedup.ratio + speedup.high) / 2
    assert fail_below(comparison, between).missed == ()
    assert fail_below(comparison, between).cleared == (comparison.groups[1],)
    assert fail_below(comparison, speedup.high).missed == ()
    assert fail_below(comparison, speedup.high * 1.01).missed == (comparison.groups[1],)


def test_without_an_interval_a_side_is_not_judged() -> None:
    comparison = compare(rounds([1.0, 1.0]) + rounds([9.0, 9.0], backend="torch"))
    bar = fail_below(comparison, 0.95)
    assert (bar.missed, bar.cleared) == ((), ())
    assert bar.unjudged == (comparison.groups[1],)


def test_an_obvious_bound_is_compared_with_the_bar() -> None:
    records = a_round(0, [3.0] * 4, [1.0] * 4) + a_round(1, [3.0] * 4, [1.0] * 4)
    slower, faster = (
        compare(records, baseline=("style", style)) for style in ("fast", "idiomatic")
    )
    assert [group.key.style for group in fail_below(slower, 0.95).missed] == ["idiomatic"]
    assert [group.key.style for group in fail_below(faster, 1.5).cleared] == ["fast"]
    assert [group.key.style for group in fail_below(faster, 2.5).unjudged] == ["fast"]


def test_a_group_that_others_disturbed_too_much_cannot_be_judged() -> None:
    missed = _slower_by_slices(others=[0.0] * 4)
    unjudged = _slower_by_slices(others=[0.5, 0.5, 0.5, 0.0])
    assert [group.key.style for group in fail_below(missed, 0.95).missed] == ["idiomatic"]
    assert [group.key.style for group in fail_below(unjudged, 0.95).disturbed] == ["idiomatic"]
    assert fail_below(unjudged, 0.95).missed == ()


def _slower_by_slices(others: Sequence[float]) -> Comparison:
    records = [
        record
        for number in range(4)
        for record in a_round(number, [2.0] * 8, [1.0] * 8, others=others)
    ]
    return compare(records, baseline=("style", "fast"))


def test_a_reference_is_not_compared_with_itself() -> None:
    bar = fail_below(compare(rounds([1.0] * 3)), 5.0)
    assert (bar.missed, bar.cleared, bar.unjudged) == ((), (), ())


def test_what_does_not_learn_misses_any_bar_however_fast() -> None:
    stuck = rounds([0.1, 0.1, 0.1], backend="torch", caveats=[Caveat.NOT_LEARNING])
    comparison = compare(rounds([1.0, 1.0, 1.0]) + stuck)
    assert fail_below(comparison, 0.5).missed == (comparison.groups[1],)


def test_a_side_without_a_finished_run_misses_any_bar() -> None:
    dead = rounds([1.0, 1.0, 1.0], backend="torch", status="failed")
    comparison = compare(rounds([1.0, 1.0, 1.0]) + dead)
    assert fail_below(comparison, 0.5).missed == (comparison.groups[1],)


def test_one_round_that_others_disturbed_fails_no_build() -> None:
    records = a_round(0, [2.0] * 8, [1.0] * 8, others=[0.5] * 4)
    bar = fail_below(compare(records, baseline=("style", "fast")), 0.95)
    assert (bar.missed, bar.unjudged) == ((), ())
    assert len(bar.disturbed) == 1


def test_a_side_that_completed_no_training_misses_every_bar() -> None:
    whole = a_round(0, [2.0] * 4, [1.0] * 4) + a_round(1, [2.0] * 4, [1.0] * 4)
    slices = [
        structs.replace(each, epochs=[]) if each.backend.style == "fast" else each for each in whole
    ]
    lost = [
        structs.replace(
            each,
            id=f"{each.id}-training",
            slices=[],
            slices_in=each.id,
            outcome=Outcome("failed", "lost"),
        )
        for each in slices
        if not each.epochs
    ]
    bar = fail_below(compare([*slices, *lost], baseline=("style", "idiomatic")), 0.5)
    assert [group.key.style for group in bar.missed] == ["fast"]


def test_a_slower_side_with_a_bound_above_the_bar_is_not_judged() -> None:
    records = a_round(0, [3.0] * 4, [1.0] * 4) + a_round(1, [3.0] * 4, [1.0] * 4)
    bar = fail_below(compare(records, baseline=("style", "fast")), 0.4)
    assert [group.key.style for group in bar.unjudged] == ["idiomatic"], (
        "it is at most 1.66 / 3 = 0.55"
    )
