"""The table, the picture and the page of a sweep."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.records import a_record, a_trial
from trainmark.analysis.comparison import compare
from trainmark.analysis.sweep import Sweep, sweeps
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record
from trainmark.report.charts.coordinates import coordinates
from trainmark.report.csv_text import to_csv
from trainmark.report.markdown import to_markdown
from trainmark.report.page import page
from trainmark.report.sweep_table import sentence, sweep_table

FOUR = [
    a_trial(number, {"learning_rate": rate, "hidden": hidden}, test_accuracy=accuracy, caveats=[Caveat.SIDE_BY_SIDE])
    for number, (rate, hidden, accuracy) in enumerate(
        [(0.1, 32, 0.9), (0.1, 64, 0.97), (0.01, 32, 0.2), (0.01, 64, 0.93)], 1
    )
]


def of(records: list[Record]) -> Sweep:
    (found,) = sweeps(records)
    return found


def test_a_line_a_trial_best_first_with_the_keys_as_columns() -> None:
    text = to_markdown([sweep_table(of(FOUR))])
    assert "mnist-mlp512: 4 trials, best first" in text
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert lines[0].startswith("| trial | learning\\_rate | hidden | test acc. |")
    assert lines[2].startswith("| **2** | **0.1** | **64** | 97.00 % |")
    assert "don't compare their timings" in text
    assert "another seed alone" in text


def test_the_notes_say_only_what_is_so() -> None:
    text = to_markdown([sweep_table(of([a_trial(1, {"seed": 1}), a_trial(2, {"seed": 2})]))])
    assert "compare their timings" not in text and "another seed" not in text


def test_a_failed_trial_says_why() -> None:
    table = sweep_table(of([*FOUR, a_trial(5, status="failed", test_accuracy=None)]))
    assert "1 not finished" in table.conditions[0]
    assert "killed by signal 9" in to_markdown([table])
    assert "killed by signal 9" in to_csv([table])


def test_a_trial_that_was_stopped_early_says_so_and_what_to_do() -> None:
    text = to_markdown([sweep_table(of([*FOUR, a_trial(5, test_accuracy=0.3, caveats=[Caveat.STOPPED_EARLY])]))])
    assert "| stopped early |" in text and "sweep without --asha" in text


def test_trials_that_did_not_learn_are_named() -> None:
    nothing = a_trial(5, test_accuracy=0.1, caveats=[Caveat.NOT_LEARNING, Caveat.SIDE_BY_SIDE])
    notes = sweep_table(of([*FOUR, nothing])).notes
    assert f"not-learning (5): {Caveat.NOT_LEARNING.meaning}." in notes
    assert not any(note.startswith("side-by-side") for note in notes), "a sentence of its own tells it"
    assert "but it did not learn" in sentence(of([nothing]))
    assert "did not learn" not in sentence(of(FOUR))


def test_the_answer_in_a_sentence() -> None:
    best = "The best of 4 trials of mnist-mlp512 with numpy fast cpu is learning_rate 0.1, hidden 64, with 97.00 %"
    assert sentence(of(FOUR)).startswith(best)
    assert sentence(of([a_trial(1, status="failed")])) == "None of 1 trial of mnist-mlp512 finished."
    assert "1 trial did not finish." in sentence(of([*FOUR, a_trial(5, status="diverged")]))


@pytest.fixture
def _altair() -> None:
    pytest.importorskip("altair", reason="trainmark[report] is not installed")


def layers(records: list[Record]) -> list[list[dict[str, Any]]]:
    """The rows of each layer: rules, lines, the best line, words."""
    chart = coordinates(of(records))
    assert chart is not None
    spec = chart.spec()
    return [spec["datasets"][layer["data"]["name"]] for layer in spec["layer"]]


def crossings(records: list[Record]) -> dict[tuple[int, str], float]:
    rows = [row for layer in layers(records)[1:3] for row in layer]
    return {(row["trial"], row["axis"]): row["place"] for row in rows}


@pytest.mark.usefixtures("_altair")
def test_every_trial_crosses_every_axis_at_its_value() -> None:
    at = crossings(FOUR)
    assert len(at) == 4 * 3
    assert at[2, "test accuracy"] == 1 and at[3, "test accuracy"] == 0
    assert at[1, "learning_rate"] > 0.9 and abs(at[3, "learning_rate"]) < 0.1
    assert at[2, "learning_rate"] > at[1, "learning_rate"], "of two with the same value the better is above"
    (best,) = {row["trial"] for row in layers(FOUR)[2]}
    assert best == 2


@pytest.mark.usefixtures("_altair")
def test_the_axis_of_the_accuracy_is_logarithmic_in_the_error() -> None:
    accuracies = (0.0, 0.9, 0.99)
    at = crossings([a_trial(number, test_accuracy=each) for number, each in enumerate(accuracies, 1)])
    assert [at[number, "test accuracy"] for number in (1, 2, 3)] == pytest.approx([0, 0.5, 1])


@pytest.mark.usefixtures("_altair")
def test_the_picture_in_words_and_what_it_leaves_out() -> None:
    chart = coordinates(of([*FOUR, a_trial(5, status="failed", test_accuracy=math.nan)]))
    assert chart is not None
    assert chart.text.startswith("Lines, best first: trial 2, learning_rate 0.1 hidden 64, 97.00 %; trial 4")
    assert "1 trial without a result left out" in chart.note


@pytest.mark.usefixtures("_altair")
def test_equal_accuracies_and_no_error_at_all_can_be_drawn() -> None:
    assert crossings([a_trial(1, test_accuracy=0.5), a_trial(2, test_accuracy=0.5)])[1, "test accuracy"] == 0
    assert crossings([a_trial(1, test_accuracy=0.5), a_trial(2, test_accuracy=1.0)])[2, "test accuracy"] == 1


@pytest.mark.usefixtures("_altair")
def test_one_trial_makes_no_picture() -> None:
    assert coordinates(of([FOUR[0]])) is None
    assert coordinates(of([FOUR[0], a_trial(2, status="failed")])) is None


@pytest.mark.usefixtures("_altair")
def test_many_values_get_few_labels() -> None:
    records = [a_trial(number, {"seed": number}, test_accuracy=number / 100) for number in range(1, 41)]
    labels = [row["label"] for layer in layers(records)[3:] for row in layer if row["axis"] == "seed"]
    assert len(set(labels)) <= 12 and "40" in labels, "the best one's is among them"


def test_a_page_of_a_sweep_alone_and_beside_other_records() -> None:
    pytest.importorskip("vl_convert", reason="trainmark[report] is not installed")
    alone = page(FOUR, compare([]))
    assert "The best of 4 trials of mnist-mlp512" in alone
    assert alone.count("mnist-mlp512: sweep") == 2, "in short, and its heading; no section for each trial"
    both = page([*FOUR, a_record()], compare([a_record()]))
    assert "there is nothing to compare it with" in both and "The best of 4 trials" in both
