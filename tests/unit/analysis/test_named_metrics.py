"""Sides are compared by the last values of the figure that ``measure --metric`` names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from tests.records import a_command
from trainmark.analysis.comparison import compare
from trainmark.record.caveats import Caveat
from trainmark.record.named_metric import NamedMetric
from trainmark.record.record import Outcome, Record
from trainmark.report.chart_data import chart_data
from trainmark.report.csv_text import to_csv
from trainmark.report.metric_words import final_sentence
from trainmark.report.tables import tables_of
from trainmark.report.verdict import verdict


def metric(last: float | None, **changes: Any) -> NamedMetric:
    facts: dict[str, Any] = {"better": "lower", "source": "printed", "count": 9, "best": last}
    if last is None:
        facts = {"better": "lower"}
    return NamedMetric("val_loss", last=last, **{**facts, **changes})


def side(name: str, values: Sequence[float | None], **changes: Any) -> list[Record]:
    return [
        a_command(
            side=name,
            round=number,
            process_seconds=10.0 if name == "a" else 5.0,
            named_metric=metric(value, **changes),
            caveats=[Caveat.LEARNING_UNSEEN],
        )
        for number, value in enumerate(values)
    ]


def said(*records: Record) -> str:
    (work,) = chart_data(compare(records))
    return verdict(work).text


A = (0.5, 0.502, 0.498, 0.5)


def test_values_that_are_alike_are_the_same() -> None:
    text = said(*side("a", A), *side("b", [value + 0.001 for value in A]))
    assert "faster" in text
    assert "both learn the same (val_loss 0.5010 and 0.5000)" in text


def test_a_higher_loss_is_worse() -> None:
    text = said(*side("a", A), *side("b", [value + 0.1 for value in A]))
    assert "; but its val_loss is 0.1000 higher (0.6000 and 0.5000; lower is better)" in text


@pytest.mark.parametrize(
    ("by", "words"),
    [(0.1, "and its val_loss is 0.1000 higher"), (-0.1, "but its val_loss is 0.1000 lower")],
)
def test_the_user_says_which_values_are_better(by: float, words: str) -> None:
    runs = side("a", A, better="higher") + side("b", [each + by for each in A], better="higher")
    text = said(*runs)
    assert f"{words} (" in text and "higher is better" in text


def test_values_that_vary_are_unclear() -> None:
    text = said(*side("a", (0.1, 0.9, 0.5)), *side("b", (0.9, 0.2, 0.5)))
    assert "no clear difference in learning (val_loss 0.5333 and 0.5000)" in text


def test_one_run_a_side_is_too_few() -> None:
    text = said(*side("a", (0.5,)), *side("b", (0.9,)))
    assert "too few runs to compare learning (val_loss 0.9000 and 0.5000)" in text


@pytest.mark.parametrize(
    ("values", "changes", "why"),
    [
        ((0.5, None, 0.5), {}, "val_loss is missing in 1 run"),
        ((0.5, math.nan, math.inf), {}, "val_loss is not finite at the end of 2 runs"),
        ((0.5, 0.5, 0.5), {"is_final": False}, "no training ran to its end"),
    ],
)
def test_learning_is_not_judged_without_all_values(
    values: Sequence[float | None], changes: dict[str, Any], why: str
) -> None:
    text = said(*side("a", (0.5, 0.5, 0.5)), *side("b", values, **changes))
    assert f"learning is not judged: {why}" in text


def test_different_figures_are_not_compared() -> None:
    text = said(*side("a", A), *side("b", A, better="higher"))
    assert "learning is not judged" in text


def test_a_difference_of_percentages_is_in_points() -> None:
    runs = side("a", (90.0, 90.1, 89.9), better="higher", is_percentage=True)
    runs += side("b", (92.5, 92.6, 92.4), better="higher", is_percentage=True)
    assert "and its val_loss is 2.50 points higher (92.50 % and 90.00 %;" in said(*runs)
    table = tables_of(compare(runs))[0]
    assert "+2.50 differs" in [cell.text for row in table.rows for cell in row.cells]
    assert "minus the reference's, in points" in " ".join(table.legend())


def test_a_percentage_and_a_share_are_not_compared() -> None:
    runs = side("a", (0.9, 0.91, 0.89), better="higher")
    runs += side("b", (92.5, 92.6, 92.4), better="higher", is_percentage=True)
    why = "val_loss is a percentage on one side alone (92.50 % and 0.9000)"
    assert f"learning is not judged: {why}" in said(*runs)


@pytest.mark.parametrize(
    ("outcome", "by_budget"),
    [
        (Outcome("ok", "the budget of 90 s ended it"), True),
        (Outcome("ok", "its session was stopped"), False),
        (Outcome("diverged", "the loss is not finite"), False),
    ],
)
def test_a_budget_is_only_named_if_there_was_one(outcome: Outcome, by_budget: bool) -> None:
    ended = [
        structs.replace(record, outcome=outcome) for record in side("a", (0.5,), is_final=False)
    ]
    (group,) = compare(ended).groups
    assert group.metric is not None
    assert "no training ran to its end" in final_sentence(group.metric)
    assert ("--budget" in final_sentence(group.metric)) is by_budget


def test_one_side_says_its_last_and_best_value() -> None:
    runs = side("a", (0.312,), best=0.301, best_at=400.0, counted_in="step")
    (group,) = compare(runs).groups
    assert group.metric is not None
    assert final_sentence(group.metric) == (
        "val_loss 0.3120 at the end (best 0.3010 at step 400, lower is better)."
    )


def test_a_percentage_keeps_its_sign() -> None:
    (group,) = compare(side("a", (97.5,), is_percentage=True)).groups
    assert group.metric is not None
    assert final_sentence(group.metric).startswith("val_loss 97.50 % at the end")


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            {"others": ["a", "b"]},
            "val_loss was never printed or logged; found: a, b.",
        ),
        ({}, "val_loss was never printed or logged; found: no name with a number."),
        (
            {"not_numbers": ["n/a"]},
            "val_loss was never printed with a number that can be read, but with: n/a.",
        ),
        (
            {"candidates": ["a val_loss", "b val_loss"]},
            "val_loss can mean several figures: a val_loss, b val_loss. "
            "Give --metric one of these names.",
        ),
    ],
)
def test_a_missing_figure_is_explained(found: dict[str, Any], sentence: str) -> None:
    (group,) = compare(side("a", (None,), **found)).groups
    assert group.metric is not None
    assert final_sentence(group.metric) == sentence


def test_the_table_has_a_column_of_its_name() -> None:
    tables = tables_of(compare(side("a", A) + side("b", A)))
    assert "val_loss" in [column.title for column in tables[0].columns]
    assert "metric_mean" in to_csv(tables).splitlines()[0]
