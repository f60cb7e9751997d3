"""``--fail-below``."""

from __future__ import annotations

from tests.records import rounds
from trainmark.analysis.bar import fail_below
from trainmark.analysis.comparison import compare
from trainmark.record.caveats import Caveat


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


def test_without_an_interval_nothing_fails_but_it_is_said() -> None:
    comparison = compare(rounds([1.0, 1.0]) + rounds([9.0, 9.0], backend="torch"))
    bar = fail_below(comparison, 0.95)
    assert (bar.missed, bar.cleared) == ((), ())
    assert bar.unjudged == (comparison.groups[1],)


def test_a_reference_is_not_held_against_itself() -> None:
    bar = fail_below(compare(rounds([1.0] * 3)), 5.0)
    assert (bar.missed, bar.cleared, bar.unjudged) == ((), (), ())


def test_what_does_not_learn_misses_any_bar_however_fast() -> None:
    stuck = rounds([0.1, 0.1, 0.1], backend="torch", caveats=[Caveat.NOT_LEARNING])
    comparison = compare(rounds([1.0, 1.0, 1.0]) + stuck)
    assert fail_below(comparison, 0.5).missed == (comparison.groups[1],)


def test_a_side_of_which_no_run_came_off_misses_any_bar() -> None:
    dead = rounds([1.0, 1.0, 1.0], backend="torch", status="failed")
    comparison = compare(rounds([1.0, 1.0, 1.0]) + dead)
    assert fail_below(comparison, 0.5).missed == (comparison.groups[1],)
