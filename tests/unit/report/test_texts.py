"""Tables, charts and verdicts of texts speak of tokens and losses; those of random data judge no
learning."""

from __future__ import annotations

import math

import pytest
from msgspec import structs

from tests.records import a_record
from trainmark.analysis.comparison import LOSS_MARGIN, compare
from trainmark.analysis.efficiency import efficiency, peaks_by_place
from trainmark.record.caveats import Caveat
from trainmark.record.record import Peaks, Record
from trainmark.report.chart_data import chart_data
from trainmark.report.charts import of_work
from trainmark.report.comparison_table import comparison_tables
from trainmark.report.record_table import record_tables
from trainmark.report.verdict import verdict


def text(backend: str, loss: float, number: int, workload: str = "shakespeare-gpt") -> Record:
    noise = 0.001 * (number % 3)
    return a_record(
        workload=workload,
        backend=backend,
        round=number,
        test_loss=loss + noise,
        train_loss=loss,
        test_accuracy=0.4,
        train_examples=3_000,
        seconds=(4.0, 2.0 + noise, 2.0),
    )


def both(loss: float) -> list[Record]:
    return [text(*side, number) for number in range(4) for side in (("jax", 1.88), ("torch", loss))]


def test_a_comparison_has_tokens_and_perplexity() -> None:
    comparison = compare(both(1.88))
    group = comparison.groups[0]
    assert group.tokens_per_second == pytest.approx(64 * (group.samples_per_second or 0))
    assert group.test_perplexity == pytest.approx(math.exp(group.test_loss or 0))
    assert comparison.data["loss_margin"] == LOSS_MARGIN
    titles = {column.title for column in comparison_tables(comparison)[0].columns}
    assert {"tokens\nper s", "test\nloss", "perplexity"} <= titles
    assert not {"samples\nper s", "test\nacc.", "train\nacc."} & titles


def test_texts_learn_the_same_by_their_loss() -> None:
    assert compare(both(1.885)).groups[1].learning.verdict == "same"
    worse = compare(both(1.95))
    learning = worse.groups[1].learning
    assert (learning.quantity, learning.verdict) == ("test_loss", "differs")
    assert learning.difference == pytest.approx(-0.07)
    assert "its test loss is 0.0700 higher" in verdict(chart_data(worse)[0]).text


def test_a_text_is_one_also_where_its_pace_is_unknown() -> None:
    slow = [structs.replace(each, epochs=each.epochs[:1], slices=[]) for each in both(1.88)]
    unknown = [
        structs.replace(each, epochs=[structs.replace(each.epochs[0], examples=None)])
        for each in slow
    ]
    comparison = compare(unknown)
    assert comparison.groups[0].tokens_per_second is None
    assert "test\nacc." not in {column.title for column in comparison_tables(comparison)[0].columns}


def test_random_data_is_not_judged_and_a_note_says_so() -> None:
    records = [
        structs.replace(each, caveats=[Caveat.RANDOM_DATA])
        for each in (
            text(side, 10.8, number, "gpt2-124m")
            for number in range(4)
            for side in ("torch", "jax")
        )
    ]
    comparison = compare(records)
    assert comparison.groups[1].learning.quantity is None
    assert comparison.groups[1].speedup.verdict == "same"
    assert "learning is not judged" in verdict(chart_data(comparison)[0]).text


def test_a_text_has_no_chart_of_accuracies() -> None:
    pytest.importorskip("altair")
    assert not {chart.name for chart in of_work(chart_data(compare(both(1.88)))[0])} & {
        "accuracy",
        "time-to-accuracy",
    }


def test_a_record_of_a_text_has_tokens_and_both_ways_to_count() -> None:
    record = structs.replace(text("torch", 1.88, 0), peaks=Peaks(1e12, 1e11, {}))
    epochs, totals = record_tables(record)
    assert "tokens/s" in {column.title for column in epochs.columns}
    assert {"test perplexity", "MFU", "MFU, nanoGPT"} <= {row.cells[0].text for row in totals.rows}


def test_nanogpt_counts_without_the_position_embedding() -> None:
    record = structs.replace(text("torch", 1.88, 0), peaks=Peaks(1e12, 1e11, {}))
    found = efficiency(record, 100.0, peaks_by_place([record]))
    assert found is not None
    per_token = 6 * 795_904 + 12 * 4 * 128 * 64
    assert found.nanogpt_mfu == pytest.approx(100 * 64 * per_token / 1e12)
