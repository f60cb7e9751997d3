"""Tables, and how they are drawn."""

from __future__ import annotations

import csv
import dataclasses
import io
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from rich.console import Console

from tests.browser.samples import full_records, slices, slices_alone
from tests.records import a_command, a_record, rounds
from trainmark.analysis.agreement import agree
from trainmark.analysis.comparison import compare
from trainmark.analysis.results import Comparison
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record
from trainmark.report import tables
from trainmark.report.chart_data import chart_data
from trainmark.report.charts import charts
from trainmark.report.conditions import split
from trainmark.report.console import draw, draw_all
from trainmark.report.csv_text import to_csv
from trainmark.report.table import Cell, Field, Table, TableRow, span
from trainmark.workload import catalog
from trainmark.workload.schedule import Target


def drawn(comparison: Comparison, width: int = 140) -> str:
    file = io.StringIO()
    console = Console(width=width, file=file, highlight=False)
    draw_all(console, tables.tables_of(comparison))
    return file.getvalue()


def two(**arguments: Any) -> Comparison:
    second = {"backend": "torch", "version": "2.8.0", "device": "cuda:0", **arguments}
    return compare(rounds([1.6, 1.68, 1.52]) + rounds([0.2, 0.21, 0.19], **second))


def test_a_comparison_says_numbers_units_conditions_and_verdicts() -> None:
    text = drawn(two(caveats=[Caveat.BUSY_MACHINE]))
    for said in (
        "mnist-mlp512 · 3 epochs",
        "mnist, 60,000 training and 10,000 test examples · fp32 · 2 threads · fresh weights · 3 "
        "runs each",
        "lab · Xeon 8481C, 2 cores · cuda:0 NVIDIA H200",
        "numpy 2.1.0, torch 2.8.0",
        "200 ms",
        "190–210 ms",
        "300k",
        "8.00× faster",
        "98.00 %",
        "1 busy-machine: other processes were using the CPU when the run started",
    ):
        assert said in text, said


def test_the_answer_comes_first() -> None:
    assert drawn(two()).startswith(
        "torch cuda:0 is 8.00× [8.00, 8.00] faster than numpy cpu; both learn the same"
    )


def test_the_legend_explains_the_columns_that_are_shown() -> None:
    def legend(width: int) -> str:
        file = io.StringIO()
        draw_all(
            Console(width=width, file=file, highlight=False), tables.tables_of(two()), legend=True
        )
        return file.getvalue()

    assert "--legend explains the columns." in drawn(two())
    assert "epoch: a steady epoch" in legend(140)
    narrow = legend(60)
    assert "speed-up: reference / this" in narrow
    assert "epoch: a steady epoch" not in narrow


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_no_digit_is_lost_on_a_narrow_terminal(width: int) -> None:
    text = drawn(two(), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text.replace("…+", "")  # the one between the bounds of a difference
    if width < 140:
        assert "Hidden at this width" in text


def test_what_differs_is_a_column_and_what_is_equal_a_condition() -> None:
    comparison = two(machine="cloud", precision="tf32", threads=None)
    lines, facts = split(comparison.groups)
    assert [fact.title for fact in facts] == ["precision", "threads", "machine"]
    assert not any("tf32" in line for line in lines)
    text = drawn(comparison, 200)
    assert "default threads" in text
    assert "lab Xeon 8481C, 2 cores, cloud Xeon 8481C, 2 cores" in text


def test_rounds_of_slices_are_not_counted_as_trainings() -> None:
    records = slices_alone(full_records())
    for some, words in (
        (records, "3 trainings and 2 rounds of slices each"),
        (records[1:], "2 to 3 trainings and 2 rounds of slices each"),
        (records[:-3], "3 trainings and 0 to 1 round of slices each"),
        (records[:4], "2 runs each"),
        (records[:3], "1 to 2 runs each"),
        (records[:2], "1 run each"),
    ):
        (table,) = tables.tables_of(compare(some))
        assert any(line.endswith(f" · {words}") for line in table.conditions), table.conditions


def test_targets_are_reached_by_trainings_alone() -> None:
    records = slices_alone(full_records())
    until = catalog.find("mnist-mlp512").with_schedule(until=Target("test_accuracy", 0.9))
    records = [
        msgspec.structs.replace(record, workload=a_record(workload=until).workload)
        for record in records
    ]
    (table,) = tables.tables_of(compare(records))
    assert {cell.detail for row in table.rows for cell in row.cells if cell.text == "never"} == {
        "0 of 3"
    }


def legend_of_speedups(records: list[Record]) -> str:
    (table,) = tables.tables_of(compare(records))
    (line,) = (line for line in table.legend() if line.startswith("speed-up: "))
    return line.partition(" same: ")[0]


BY_ROUND = "paired by round (not the ratio of the medians)"
HOOKED = [
    a_command(side=side, round=number, seconds=(2.0, pace, pace), slices=slices(pace, orders))
    for number in range(3)
    for side, pace, orders in (("a", 2.0, (0, 3)), ("b", 1.0, (1, 2)))
]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (HOOKED, "from interleaved slices, with its 97 % interval over rounds."),
        (HOOKED[:2], "from interleaved slices, without an interval."),
        (
            HOOKED[:4],
            "from interleaved slices, with a bound from two rounds that agree on an obvious "
            "difference.",
        ),
        (
            rounds([2.0] * 3) + rounds([1.0] * 3, device="cuda:0"),
            f"of a steady epoch, {BY_ROUND}, with its 95 % interval.",
        ),
        (
            rounds([2.0]) + rounds([1.0], device="cuda:0"),
            f"of a steady epoch, {BY_ROUND}, without an interval.",
        ),
        (
            rounds([2.0] * 3) + rounds([1.0] * 3, device="cuda:0", group="plan-2"),
            "of a steady epoch, ratio of geometric means (not of the medians), with Welch's 95 % "
            "interval, which "
            "covers variation between runs, not between days or machines.",
        ),
        (
            [a_command(side=side, round=number) for number in range(3) for side in "ab"],
            f"of whole processes, {BY_ROUND}, with its 95 % interval.",
        ),
        (
            rounds([2.0] * 3) + rounds([1.0] * 3, device="cuda:0") + rounds([1.0], device="cuda:1"),
            f"of a steady epoch, {BY_ROUND}, with its 95 % interval; or of a steady epoch, "
            f"{BY_ROUND}, without an "
            "interval.",
        ),
    ],
    ids=[
        "slices",
        "few slices",
        "obvious slices",
        "epochs",
        "few epochs",
        "unpaired",
        "processes",
        "some have an interval",
    ],
)
def test_the_legend_and_the_chart_say_what_is_compared_and_how(
    records: list[Record], said: str
) -> None:
    pytest.importorskip("altair", reason="trainmark[report] is not installed")
    assert legend_of_speedups(records) == f"speed-up: reference / this {said}"
    (chart,) = charts(chart_data(compare(records)), ["speedup"])
    assert chart.note == f"Above 1 is faster: reference / this {said}"
    assert "interval" not in chart.title + chart.text


def test_an_obvious_difference_shows_its_only_bound() -> None:
    (table,) = tables.tables_of(compare(HOOKED[:4]))
    assert ("2.00× faster", "≥ 1.20×") in {(cell.text, cell.detail) for cell in table.rows[1].cells}


@pytest.mark.parametrize(("number", "verdict"), [(1, "too few"), (3, "faster")])
def test_the_chart_has_the_verdict_of_the_table(number: int, verdict: str) -> None:
    pytest.importorskip("altair", reason="trainmark[report] is not installed")
    comparison = compare(rounds([2.0] * number) + rounds([1.0] * number, device="cuda:0"))
    (chart,) = charts(chart_data(comparison), ["speedup"])
    assert chart.text.endswith(f" {verdict}.")
    (table,) = tables.tables_of(comparison)
    assert f"2.00× {verdict}" in {cell.text for cell in table.rows[1].cells}


def test_two_versions_of_one_backend_need_a_column() -> None:
    comparison = compare(rounds([2.0] * 3) + rounds([1.0] * 3, version="2.2.0"))
    _, facts = split(comparison.groups)
    assert [fact.title for fact in facts] == ["version"]


def test_failed_runs_are_counted_next_to_the_measured() -> None:
    assert "3/4" in drawn(compare([*rounds([2.0] * 3), a_record(round=3, status="failed")]))


def test_a_group_of_failures_alone_can_be_drawn_in_every_form() -> None:
    comparison = compare([a_record(status="failed", seconds=())])
    assert "0/1" in drawn(comparison)
    assert "failed-runs" in tables.comparison_markdown(comparison)
    assert "failed-runs" in to_csv(tables.tables_of(comparison))


def test_a_row_without_figures_says_where_to_look() -> None:
    broken = a_record(status="interrupted", seconds=())
    assert "has no finished run; trainmark show" in drawn(compare([broken]))
    assert "has no finished run" not in drawn(compare([a_record()]))


def test_without_a_test_set_the_training_accuracy_is_shown() -> None:
    text = drawn(compare(rounds([2.0] * 3, test_accuracy=None)), 90)
    assert "97.50 %" in text
    assert "test" not in text.split("\n\n")[0].replace("test examples", "")


def test_an_unasked_comparison_says_so() -> None:
    assert "No two groups differ only in style" in drawn(
        compare(rounds([1.0]) + rounds([1.0], device="cuda:0"), "style")
    )


def test_published_figures_come_with_their_note_and_verdicts() -> None:
    workload = catalog.find("mnist-mlp32")
    assert workload.published is not None
    scheduled = workload.scheduled_as(workload.published.runs[0])
    records = [
        a_record(workload=scheduled, repeat=n, id=str(n), train_accuracy=0.88, train_loss=0.7)
        for n in range(10)
    ]
    bands = {"train_accuracy": (0.86, 0.90), "train_loss": (0.42, 0.54)}
    published = tuple(
        dataclasses.replace(
            result,
            values=tuple(
                dataclasses.replace(
                    value, low=bands[value.quantity][0], high=bands[value.quantity][1]
                )
                for value in result.values
            ),
        )
        for result in agree(records)
    )
    text = drawn(dataclasses.replace(compare(records), published=published), 160)
    for said in (
        "after 50 and 60 steps, not after 10",
        "88.08 %",
        "86.00–90.00 %",
        "agrees",
        "differs",
        "0.4200–0.5400",
    ):
        assert said in text, said
    assert "3.54 s" in text
    assert "10 steps; no loading, no evaluation" in text
    assert "no records of 'benchmark 2', 'benchmark 3', 'benchmark 4'." in text
    assert "To measure: trainmark run mnist-mlp32 --published" in text


def test_csv_is_unrounded_and_rectangular() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(tables.tables_of(two())))))
    assert [row["backend"] for row in rows] == ["numpy", "torch"]
    assert float(rows[1]["epoch_seconds_median"]) == 0.2
    assert rows[0]["speedup_low"] == ""
    assert rows[1]["speedup_verdict"] == "faster"
    assert None not in rows[0]


def test_markdown_is_one_line_a_row_and_escapes_its_signs() -> None:
    table = Table("a_b", (), (Field("x", align="right"),), (TableRow((Cell("1|2", "3"),)),), ("*",))
    from trainmark.report.markdown import to_markdown

    assert to_markdown([table]) == "### a\\_b\n\n\n| x |\n| ---: |\n| 1\\|2 (3) |\n\n- \\*\n"


def test_square_brackets_are_words_not_markup() -> None:
    file = io.StringIO()
    console = Console(width=80, file=file)
    draw(console, Table("t", (), (Field("x"),), (TableRow((Cell("[red]"),)),)))
    assert "[red]" in file.getvalue()


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ("7.20 s", "7.44 s", "7.20–7.44 s"),
        ("900 ms", "1.10 s", "900 ms–1.10 s"),
        ("2 min 1 s", "2 min 5 s", "2 min 1 s–2 min 5 s"),
    ],
)
def test_a_span_says_its_unit_once(low: str, high: str, expected: str) -> None:
    assert span(low, high) == expected


def test_analysis_and_tables_do_not_import_rich() -> None:
    code = (
        "import sys, trainmark.analysis.comparison, trainmark.analysis.agreement, "
        "trainmark.report.tables\n"
        "sys.exit('rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_machine_with_another_processor_gets_a_column() -> None:
    before = rounds([2.0])
    after = [
        msgspec.structs.replace(
            record, id="x", machine=msgspec.structs.replace(record.machine, cpu="EPYC")
        )
        for record in rounds([1.0])
    ]
    _, facts = split(compare(before + after).groups)
    assert [fact.title for fact in facts] == ["machine"]
