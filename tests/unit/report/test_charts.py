"""The words of charts, which describe what they draw."""

from __future__ import annotations

import json

import msgspec
import pytest

from tests.browser.samples import a_full_record, full_records, records_of_every_chart
from tests.records import a_record, rounds
from trainmark.analysis.comparison import compare
from trainmark.record.record import Epoch, Final, Peaks, Record, Samples, Slice
from trainmark.report.chart_data import chart_data
from trainmark.report.charts import NAMES, charts
from trainmark.report.charts.breakdown import breakdown
from trainmark.report.charts.chart import Chart
from trainmark.report.explained import Explained, ExplainedPart

pytest.importorskip("altair", reason="trainmark[report] is not installed")


def drawn(records: list[Record], name: str) -> list[Chart]:
    return charts(chart_data(compare(records)), [name])


def test_every_chart_can_be_drawn_and_says_what_it_shows() -> None:
    every = charts(chart_data(compare(records_of_every_chart())), NAMES)
    for chart in every:
        assert len(chart.text) > 30
        assert chart.spec()["description"].startswith(chart.title)
    assert {chart.name for chart in every} == {*NAMES}


def test_where_nothing_is_known_nothing_is_drawn() -> None:
    assert charts(chart_data(compare([a_record(epochs=[], final=Final())])), NAMES) == []


COMPARES_SIDES = ("speedup", "pace", "energy", "money")


def test_two_points_are_a_chart_only_where_sides_are_compared() -> None:
    short = []
    for record in full_records(3):
        assert record.samples is not None
        seen = Samples(
            1.0, [1.0, 2.0], **{column: getattr(record.samples, column)[:2] for column in SAMPLED}
        )
        epochs = [
            msgspec.structs.replace(each, test_accuracy=0.55 + 0.17 * each.index)
            for each in record.epochs[:2]
        ]
        short.append(msgspec.structs.replace(record, epochs=epochs, samples=seen))
    every = charts(chart_data(compare(short)), NAMES)
    assert {chart.name for chart in every} == {*COMPARES_SIDES, "times"}


SAMPLED = ("cpu_percent", "tree_cpu_percent", "tree_resident_bytes")


@pytest.mark.parametrize("name", COMPARES_SIDES)
def test_one_side_is_compared_with_none(name: str) -> None:
    assert drawn([a_full_record()], name) == []


def test_a_roofline_needs_three_sides() -> None:
    sides = [a_full_record(style=style) for style in ("fast", "idiomatic", "compiled")]
    assert drawn(sides[:2], "roofline") == []
    (chart,) = drawn(sides, "roofline")
    assert "24.1 % of the peak" in chart.text
    disturbed = [
        msgspec.structs.replace(each, peaks=Peaks(4e11, 2e10, {"disturbed": True}))
        for each in sides
    ]
    assert "≤ 25 % of the peak" in drawn(disturbed, "roofline")[0].text


def test_words_of_a_point_lie_within_the_axis_whatever_the_ratio() -> None:
    """They begin at a point on the left end of the axis, and end at one on its right end."""
    paces = {"cpu": 2.0, "cuda:0": 0.01, "cuda:1": 40.0}
    records = [
        record for device, pace in paces.items() for record in rounds([pace] * 3, device=device)
    ]
    (chart,) = drawn(records, "speedup")
    rows = {
        row["side"].split()[-1]: row
        for part in chart.spec()["datasets"].values()
        for row in part
        if "dx" in row
    }
    assert rows["cuda:1"]["dx"] > -20
    assert rows["cuda:0"]["dx"] < -6 * len(rows["cuda:0"]["words"])
    assert rows["cpu"]["dx"] == 8, "on the right of the vertical line"


def test_the_time_to_an_accuracy_is_of_the_median_of_all_runs() -> None:
    """Three of five came to 70 % and 80 %, after 10, 20 and 30 s; the run in the middle of all five
    took 30."""
    records = []
    for round, seconds in enumerate((10.0, 20.0, 30.0, None, None)):
        epochs = [Epoch(0, 0.0, 1.0, 1, 1, test_accuracy=0.5)]
        epochs.append(
            Epoch(1, 1.0, (seconds or 9.0) - 1, 1, 1, test_accuracy=0.8 if seconds else 0.6)
        )
        records.append(a_record(round=round, epochs=epochs))
    records += [a_record(round=9, epochs=[], slices=[Slice(0, 0, 0.0, 1, 1, 1.0, 128)])] * 2
    (chart,) = drawn(records, "time-to-accuracy")
    assert "80.0% after 30.0 s" in chart.text


def test_a_core_that_was_never_read_is_left_out() -> None:
    samples = Samples(
        1.0, [1.0, 2.0, 3.0, 4.0], cpu_percent=[[], [None, 40.0], [None, 45.0], [None, 50.0]]
    )
    (chart,) = drawn([msgspec.structs.replace(a_full_record(), samples=samples)], "cores")
    assert chart.text.endswith("core 1 45 %.")


def test_two_explanations_of_the_same_step_have_a_bar_each() -> None:
    parts = [ExplainedPart("input", 0.8), ExplainedPart("copy", -0.1)]
    chart = breakdown([Explained("w", "b", "s", "cpu", 1.0, parts, 0.3) for _ in range(2)])
    assert chart is not None
    assert "w: b s cpu (1), input 80.0 %" in chart.text
    assert "copy -10.0 %" in chart.text
    assert breakdown([]) is None


def test_control_characters_of_a_record_do_not_reach_a_chart() -> None:
    hostile = msgspec.structs.replace(
        a_full_record(), backend=msgspec.structs.replace(a_full_record().backend, name="a\0b")
    )
    specs = [
        json.dumps(chart.spec())
        for chart in charts(chart_data(compare([hostile, a_full_record()])), NAMES)
    ]
    assert specs
    assert not any("\\u0000" in spec for spec in specs)
