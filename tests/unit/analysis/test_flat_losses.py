"""An observed loss that does not fall is judged next to the other sides of the same script."""

from __future__ import annotations

import pytest

from tests.records import a_command
from trainmark.analysis.answer import answering_pair
from trainmark.analysis.comparison import compare
from trainmark.analysis.summary import summarize
from trainmark.record.caveats import Caveat
from trainmark.record.observed import LOSS_DID_NOT_FALL, Observed
from trainmark.record.record import Record
from trainmark.report.chart_data import chart_data
from trainmark.report.verdict import verdict

FALLS = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]


def run(
    side: str,
    round: int,
    why: str | None = None,
    seconds: float = 10.0,
    losses: list[float] | None = None,
) -> Record:
    """A run whose loss fell, or says nothing about learning for a reason."""
    unknown = {} if why is None else {"learning": why}
    return a_command(
        side=side,
        round=round,
        process_seconds=seconds,
        observed=Observed("torch", (), 20, 1.0, losses=losses or FALLS, unknown=unknown),
        caveats=[] if why is None else [Caveat.LEARNING_UNSEEN],
    )


def said(*records: Record) -> str:
    comparison = compare(records)
    assert answering_pair(comparison, [0, 1]) is not None
    (work,) = chart_data(comparison)
    return verdict(work).text


def test_if_no_loss_falls_the_speed_has_its_verdict() -> None:
    runs = [
        run(side, number, LOSS_DID_NOT_FALL, seconds)
        for number in range(4)
        for side, seconds in (("a", 10.0), ("b", 5.0))
    ]
    text = said(*runs)
    assert "b is 2.00×" in text and "faster than a" in text
    assert "learning is not judged: its loss did not fall; name a figure with --metric" in text


def test_a_side_whose_loss_never_falls_next_to_one_that_learns() -> None:
    runs = [run("a", number) for number in range(4)]
    runs += [run("b", number, LOSS_DID_NOT_FALL, 5.0) for number in range(4)]
    assert "b: some runs did not learn train.py" in said(*runs)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_few_losses_do_not_show_whether_they_fall(number: int) -> None:
    assert summarize(run("a", 0, losses=FALLS[:number])).loss_fell is None
    runs = [run("a", round, losses=FALLS[:number]) for round in range(4)]
    runs += [run("b", round, LOSS_DID_NOT_FALL, 5.0) for round in range(4)]
    text = said(*runs)
    assert "faster" in text and "learning is not judged" in text


def test_losses_that_fall_in_some_runs_prove_nothing() -> None:
    runs = [run("a", number) for number in range(4)]
    runs += [run("b", number, LOSS_DID_NOT_FALL if number else None, 5.0) for number in range(4)]
    text = said(*runs)
    assert "faster" in text and "learning is not judged" in text


def test_the_loss_of_a_gan_is_not_judged_next_to_one_that_falls() -> None:
    runs = [run("a", number) for number in range(4)]
    runs += [run("b", number, "several optimisers step in turn", 5.0) for number in range(4)]
    text = said(*runs)
    assert "faster" in text
    assert "learning is not judged: several optimisers step in turn" in text
