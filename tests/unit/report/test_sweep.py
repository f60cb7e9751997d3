"""The table, the picture and the page of a sweep."""

from __future__ import annotations

import pytest

from tests.records import a_record, a_trial
from trainmark.analysis.comparison import compare
from trainmark.analysis.sweep import Sweep, sweeps
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record
from trainmark.report.csv_text import to_csv
from trainmark.report.markdown import to_markdown
from trainmark.report.page import page
from trainmark.report.sweep_table import sentence, sweep_table

FOUR = [
    a_trial(
        number,
        {"learning_rate": rate, "hidden": hidden},
        test_accuracy=accuracy,
        caveats=[Caveat.SIDE_BY_SIDE],
    )
    for number, (rate, hidden, accuracy) in enumerate(
        [(0.1, 32, 0.9), (0.1, 64, 0.97), (0.01, 32, 0.2), (0.01, 64, 0.93)], 1
    )
]


def of(records: list[Record]) -> Sweep:
    (found,) = sweeps(records)
    return found


def test_each_trial_has_a_line_and_the_best_comes_first() -> None:
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
    text = to_markdown(
        [sweep_table(of([*FOUR, a_trial(5, test_accuracy=0.3, caveats=[Caveat.STOPPED_EARLY])]))]
    )
    assert "| stopped early |" in text and "sweep without --asha" in text


def test_trials_that_did_not_learn_are_named() -> None:
    nothing = a_trial(5, test_accuracy=0.1, caveats=[Caveat.NOT_LEARNING, Caveat.SIDE_BY_SIDE])
    notes = sweep_table(of([*FOUR, nothing])).notes
    assert f"not-learning (5): {Caveat.NOT_LEARNING.meaning}." in notes
    assert not any(note.startswith("side-by-side") for note in notes), (
        "a sentence of its own tells it"
    )
    assert "but it did not learn" in sentence(of([nothing]))
    assert "did not learn" not in sentence(of(FOUR))


def test_the_answer_in_a_sentence() -> None:
    best = (
        "The best of 4 trials of mnist-mlp512 with numpy fast cpu is learning_rate 0.1, "
        "hidden 64, with 97.00 %"
    )
    assert sentence(of(FOUR)).startswith(best)
    assert (
        sentence(of([a_trial(1, status="failed")])) == "None of 1 trial of mnist-mlp512 finished."
    )
    assert "1 trial did not finish." in sentence(of([*FOUR, a_trial(5, status="diverged")]))


def test_a_page_of_a_sweep_alone_and_next_to_other_records() -> None:
    pytest.importorskip("vl_convert", reason="trainmark[report] is not installed")
    alone = page(FOUR, compare([]))
    assert "The best of 4 trials of mnist-mlp512" in alone
    assert alone.count("mnist-mlp512: sweep") == 2, (
        "in short, and its heading; no section for each trial"
    )
    both = page([*FOUR, a_record()], compare([a_record()]))
    assert "there is nothing to compare it with" in both and "The best of 4 trials" in both
