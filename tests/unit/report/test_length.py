"""Steps where steps were asked for, and no word that was not given."""

from __future__ import annotations

import pytest

from tests.records import a_command, a_record
from trainmark.analysis.comparison import compare
from trainmark.record.record import Record
from trainmark.report.chart_data import chart_data
from trainmark.report.charts.time import pace
from trainmark.report.comparison_table import title_of
from trainmark.report.length import length
from trainmark.report.record_table import record_tables
from trainmark.terminal.runs import _summary
from trainmark.workload import catalog

IN_STEPS = catalog.find("mnist-mlp512").with_schedule(steps=1407)


@pytest.mark.parametrize(
    ("epochs", "steps", "by_steps", "words"),
    [
        (2, 938, False, "2 epochs, 938 steps"),
        (6, 40, True, "40 steps"),
        (1, 1, True, "1 step"),
        (3, 0, False, "3 epochs"),
        (3, 0, True, "3 epochs"),  # a record without its steps
        (0, 0, False, ""),
    ],
)
def test_length(epochs: int, steps: int, by_steps: bool, words: str) -> None:
    assert length(epochs, steps, by_steps=by_steps) == words


@pytest.mark.parametrize(
    ("record", "words"),
    [(a_record(workload=IN_STEPS), "1,407 steps"), (a_record(), "3 epochs, 1,407 steps")],
    ids=["asked for in steps", "in epochs"],
)
def test_the_heading_and_the_line_of_a_run_say_it_alike(record: Record, words: str) -> None:
    assert title_of(compare([record]).groups) == f"mnist-mlp512 · {words}"
    assert f"round 1: {words} in 8.00 s," in _summary(record, "round 1")


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (a_command(device=None), "train.py, round 1: 10.0 s from start to end"),
        (a_command(side="workers=4"), "train.py workers=4 cpu, round 1: 10.0 s from start to end"),
        (
            a_record(epochs=[]),
            "mnist-mlp512 numpy fast cpu, round 1: test accuracy 98.00 %, train loss 0.08000",
        ),
    ],
)
def test_unknown_lengths_are_left_out(record: Record, words: str) -> None:
    assert _summary(record, "round 1") == words


def test_the_title_of_a_commands_record() -> None:
    assert record_tables(a_command(device=None))[0].title == "train.py: ok"


@pytest.mark.parametrize(("threads", "words"), [(1, "fp32, 1 thread"), (2, "fp32, 2 threads")])
def test_one_thread_is_one_thread(threads: int, words: str) -> None:
    conditions = record_tables(a_record(threads=threads))[0].conditions
    assert any(line.endswith(words) for line in conditions), conditions


@pytest.mark.parametrize(
    ("seconds", "of"), [((4.0,), "the only epoch"), ((4.0, 2.0, 2.0), "a steady epoch")]
)
def test_a_single_epoch_is_not_called_a_steady_one(seconds: tuple[float, ...], of: str) -> None:
    pytest.importorskip("altair")
    from trainmark.record.caveats import Caveat

    caveats = [Caveat.ONE_EPOCH] if len(seconds) == 1 else []
    records = [a_record(seconds=seconds, caveats=caveats)]
    (work,) = chart_data(compare(records))
    chart = pace(work)
    assert chart is not None
    assert chart.note == f"Median over runs, of {of}."
