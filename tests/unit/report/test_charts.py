"""What charts say in words, which is what they draw."""

from __future__ import annotations

import msgspec
import pytest

from tests.browser.samples import a_full_record, full_records
from tests.records import a_record
from trainmark.analysis.comparison import compare
from trainmark.record.record import Epoch, Final, Record, Samples
from trainmark.report.charts import NAMES, charts
from trainmark.report.charts.breakdown import breakdown
from trainmark.report.charts.chart import Chart
from trainmark.report.explained import Explained, Part
from trainmark.report.works import works

pytest.importorskip("altair", reason="trainmark[report] is not installed")


def drawn(records: list[Record], name: str) -> list[Chart]:
    return charts(works(compare(records)), [name])


@pytest.mark.parametrize("name", NAMES)
def test_every_chart_can_be_drawn_and_says_what_it_shows(name: str) -> None:
    for chart in drawn(full_records(), name):
        assert chart.name == name
        assert len(chart.text) > 30
        assert chart.spec()["description"].startswith(chart.title)
    assert drawn(full_records(), name)


@pytest.mark.parametrize("name", NAMES)
def test_where_nothing_is_known_nothing_is_drawn(name: str) -> None:
    assert drawn([a_record(epochs=[], final=Final())], name) == []


def test_the_time_to_an_accuracy_is_that_of_the_median_run_and_not_of_those_that_got_there() -> None:
    """Three of five came to 98 %, after 10, 20 and 30 s; the run in the middle of all five took 30."""
    records = []
    for round, seconds in enumerate((10.0, 20.0, 30.0, None, None)):
        epochs = [Epoch(0, 0.0, 1.0, 1, 1, test_accuracy=0.5)]
        epochs.append(Epoch(1, 1.0, (seconds or 9.0) - 1, 1, 1, test_accuracy=0.98 if seconds else 0.6))
        records.append(a_record(round=round, epochs=epochs))
    (chart,) = drawn(records, "time-to-accuracy")
    assert "98.0% after 30.0 s" in chart.text


def test_a_core_that_was_never_read_is_left_out() -> None:
    samples = Samples(1.0, [1.0, 2.0, 3.0], cpu_percent=[[], [None, 40.0], [None, 50.0]])
    (chart,) = drawn([msgspec.structs.replace(a_full_record(), samples=samples)], "cores")
    assert chart.text.endswith("core 1 45 %.")


def test_two_explanations_of_the_same_step_have_a_bar_each() -> None:
    parts = [Part("input", 0.8), Part("copy", -0.1)]
    chart = breakdown([Explained("w", "b", "s", "cpu", 1.0, parts, 0.3) for _ in range(2)])
    assert chart is not None
    assert "w: b s cpu (1), input 80.0 %" in chart.text
    assert "copy -10.0 %" in chart.text
    assert breakdown([]) is None
