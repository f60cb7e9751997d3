"""Records of commands are compared by epochs if they report them, else as a whole."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from tests.records import a_command, a_record
from trainmark.analysis.comparison import compare
from trainmark.analysis.groups import group_records
from trainmark.analysis.two_records import set_against
from trainmark.record import codec
from trainmark.record.caveats import Caveat
from trainmark.record.observed import Observed
from trainmark.record.record import Energy, Final, Process, Record, Slice
from trainmark.report.chart_data import chart_data
from trainmark.report.csv_text import to_csv
from trainmark.report.page import page
from trainmark.report.record_table import record_tables
from trainmark.report.tables import comparison_markdown, tables_of
from trainmark.report.verdict import verdict


def sides(**second: object) -> list[Record]:
    return [
        a_command(side=side, round=number, **(second if side == "b" else {}))  # type: ignore[arg-type]
        for number in range(4)
        for side in "ab"
    ]


def test_whole_processes_are_compared_if_no_epochs_are_reported() -> None:
    a, b = compare(sides(process_seconds=5.0)).groups
    assert (b.speedup.ratio, b.speedup.of, b.speedup.verdict) == (
        pytest.approx(2),
        "process",
        "faster",
    )
    assert a.process_seconds.median == 10.0
    assert a.epoch_seconds.median is None
    assert Caveat.ONE_EPOCH not in a.caveats


def test_epochs_are_compared_where_both_report_them() -> None:
    both = [
        a_command(side=side, round=number, seconds=(3.0, each, each), examples=600)
        for number in range(4)
        for side, each in (("a", 2.0), ("b", 1.0))
    ]
    _, b = compare(both).groups
    assert (b.speedup.ratio, b.speedup.of) == (pytest.approx(2), "epoch")
    assert b.samples_per_second == 600


def test_processes_are_compared_if_one_side_reports_no_epochs() -> None:
    _, b = compare(sides(process_seconds=20.0, seconds=(1.0, 1.0))).groups
    assert (b.speedup.ratio, b.speedup.of) == (pytest.approx(0.5), "process")


def test_an_epoch_of_fewer_examples_is_no_faster_one() -> None:
    both = [
        a_command(side=side, round=number, seconds=(3.0, each, each), examples=examples)
        for number in range(4)
        for side, each, examples in (("a", 2.0, 600), ("b", 1.0, 300))
    ]
    _, b = compare(both).groups
    assert b.speedup.ratio is None
    assert Caveat.DIFFERENT_DATA in b.caveats


def test_an_edited_script_is_another_side_of_the_same_work() -> None:
    before, after = (
        [
            a_command(
                id=f"{sha}-{number}",
                round=number,
                process=Process(
                    ["python", "train.py"], "/work", 0.0, seconds, 0, program_sha256=sha * 64
                ),
            )
            for number in range(4)
        ]
        for sha, seconds in (("a", 1.0), ("b", 2.0))
    )
    comparison = compare([*before, *after])
    assert [group.runs for group in comparison.groups] == [4, 4]
    assert comparison.groups[1].speedup.ratio == pytest.approx(0.5)
    assert "program aaaaaaaa" in comparison_markdown(comparison)


def test_another_command_is_other_work() -> None:
    records = [a_command(), a_record()]
    assert len({group.key.same_work for group in group_records(records)}) == 2
    assert all(
        group.reference == position for position, group in enumerate(compare(records).groups)
    )


def test_what_is_null_survives_being_written() -> None:
    record = a_command(seconds=(1.0,), loss=(float("nan"),))
    again = codec.decode(codec.encode(record), "a test")
    assert (
        again.dataset is None
        and again.model is None
        and again.metrics is None
        and again.seed is None
    )
    assert again.process == record.process
    assert str(again.epochs[0].train_loss) == "nan"


def test_tables_name_what_is_compared_and_what_is_not_known() -> None:
    comparison = compare(sides(process_seconds=5.0))
    text = comparison_markdown(comparison)
    assert "whole processes" in text
    assert "speed-up: reference / this of whole processes" in text
    mixed = comparison_markdown(compare(sides(process_seconds=20.0, seconds=(1.0, 1.0))))
    assert "speed-up: reference / this of whole processes" in mixed
    assert "None" not in text
    assert "process_seconds_median" in to_csv(tables_of(comparison))
    told = "\n".join(line for table in record_tables(a_command()) for line in table.conditions)
    assert "not known of a command" in told
    assert "None" not in told


def test_a_page_can_be_made_of_them() -> None:
    pytest.importorskip("vl_convert", reason="trainmark[report] is not installed")
    records = sides(process_seconds=5.0)
    text = page(records, compare(records))
    assert "b is 2.00×" in text
    assert (
        "2.00× [2.00, 2.00] faster than a; no accuracy to compare (train.py with python on cpu, "
        "from start to end)" in text
    )


def test_the_answer_is_the_fastest_of_several() -> None:
    records = [
        a_command(side=side, round=number, process_seconds=seconds)
        for number in range(4)
        for side, seconds in (("a", 10.0), ("b", 20.0), ("c", 5.0))
    ]
    comparison = compare(records)
    (work,) = chart_data(comparison)
    assert verdict(work).text.startswith("c is 2.00× [")


def test_two_commands_are_compared_with_each_other() -> None:
    found = set_against(a_command(process_seconds=10.0), a_command(process_seconds=5.0))
    assert found.ratio == pytest.approx(2)
    assert found.contrasts == ()
    told, not_told = (a_command(seconds=(1.0, 2.0), examples=examples) for examples in (600, None))
    assert set_against(told, not_told).ratio == pytest.approx(1)
    assert set_against(
        a_command(seconds=(0.0,)), a_command(process_seconds=5.0)
    ).ratio == pytest.approx(2)


def test_a_failed_one_is_counted_with_its_side() -> None:
    records = [*sides(), a_command(side="b", round=4, status="failed", process_seconds=None)]
    assert [(group.runs, group.failed) for group in compare(records).groups] == [(4, 0), (4, 1)]


def ended_by_the_budget(record: Record, **changes: Any) -> Record:
    return structs.replace(
        record,
        observed=Observed("torch", (), 101, 2.0, examples_per_step=32.0, ended_early=True),
        **changes,
    )


def in_turns(record: Record, place: int, seconds: float, examples: float) -> Record:
    """A record with eight blocks of two slices that took this long."""
    slices = [
        Slice(block, order, 20.0 * block + order, 10, 10, seconds, examples)
        for block in range(8)
        for order in (place, 9 - place)
    ]
    return structs.replace(record, slices=slices)


def test_trainings_cut_by_the_budget_have_no_length_or_cost() -> None:
    first = [
        a_command(side="a", round=n, seconds=(4.0,), examples=608, price_per_hour=36.0)
        for n in range(3)
    ]
    second = [
        a_command(side="b", round=n, seconds=(2.0,) * 3, examples=640, price_per_hour=36.0)
        for n in range(3)
    ]
    sides = [
        [in_turns(each, place, 1.0, 320.0) for each in side]
        for place, side in enumerate((first, second))
    ]
    energy = Energy(60.8, "rapl")
    a, b = compare(
        [ended_by_the_budget(each, energy=energy) for each in [*sides[0], *sides[1]]]
    ).groups
    assert Caveat.DIFFERENT_DATA not in b.caveats and b.speedup.ratio == pytest.approx(1)
    assert (a.training_seconds, a.cost.money, a.cost.joules) == (None, None, None)
    assert a.cost.money_per_million_samples == pytest.approx(0.04 / 608 * 1e6)
    assert a.cost.joules_per_million_samples == pytest.approx(1e5)
    whole = compare([structs.replace(each, energy=energy) for each in first]).groups[0]
    assert (whole.training_seconds, whole.cost.money, whole.cost.joules) == (
        4.0,
        pytest.approx(0.04),
        60.8,
    )


def test_partial_epochs_of_different_batches_are_not_compared() -> None:
    records = [
        ended_by_the_budget(
            a_command(side=side, round=number, seconds=(seconds,), examples=examples)
        )
        for number in range(4)
        for side, seconds, examples in (("a", 1.0, 608), ("b", 1.5, 1216))
    ]
    _, b = compare(records).groups
    assert b.speedup.ratio is None and Caveat.DIFFERENT_DATA in b.caveats


def test_slices_of_a_training_need_no_whole_one() -> None:
    whole = [in_turns(a_record(round=number), 0, 2.0, 1280.0) for number in range(3)]
    alone = [
        a_record(backend="torch", round=number, epochs=[], final=Final()) for number in range(3)
    ]
    group = compare([*whole, *(in_turns(each, 1, 1.0, 1280.0) for each in alone)]).groups[1]
    assert (group.speedup.ratio, group.speedup.of) == (pytest.approx(2), "slice")


def test_without_whole_epochs_the_fastest_is_found_by_slices() -> None:
    records = [
        ended_by_the_budget(in_turns(a_command(side=side, round=number), place, seconds, 320.0))
        for number in range(4)
        for place, (side, seconds) in enumerate((("a", 1.0), ("b", 0.9), ("c", 0.5)))
    ]
    (work,) = chart_data(compare(records))
    assert verdict(work).text.startswith("c is 2.00× [")


def test_slices_of_examples_and_of_epochs_are_not_compared() -> None:
    records = [
        in_turns(
            a_command(side=side, round=number, seconds=(2.0,) * 3, examples=examples),
            place,
            2.0,
            examples or 1,
        )
        for number in range(4)
        for place, (side, examples) in enumerate((("a", None), ("b", 60_000)))
    ]
    _, b = compare(records).groups
    assert (b.speedup.ratio, b.speedup.of) == (pytest.approx(1), "epoch")
