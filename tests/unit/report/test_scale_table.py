"""The table of an answer about several devices."""

from __future__ import annotations

import dataclasses
import json

import pytest

from trainmark.analysis.comparison import MARGIN
from trainmark.analysis.results import Speedup
from trainmark.analysis.scale import Agreement, LayoutResult, Scaling
from trainmark.analysis.statistics import Estimate, speed_verdict
from trainmark.record.caveats import Caveat
from trainmark.report.scale_table import scale_tables
from trainmark.report.table import Table

SHARE = Estimate(0.45, 0.43, 0.47)


def layout(data: int, share: Estimate = SHARE, **changes: object) -> LayoutResult:
    ratio = Estimate(*(bound and bound * data for bound in dataclasses.astuple(share)))
    found = LayoutResult(
        data=data,
        pipeline=1,
        ranks=data,
        runs=5,
        failed=0,
        batch=128,
        samples_per_second=Estimate(25_000.0, 24_000.0, 26_000.0),
        step_seconds=Estimate(5e-3, 4.9e-3, 5.1e-3),
        speedup=Speedup(*dataclasses.astuple(ratio), speed_verdict(ratio, MARGIN), "slice"),
        efficiency=share,
        communication=Estimate(0.51, 0.48, 0.55),
        agreement=Agreement(100, 3e-16, 1e-9, None, True, None) if data > 1 else None,
        reason=None,
    )
    return dataclasses.replace(found, **changes)  # type: ignore[arg-type]


def answer(*layouts: LayoutResult, **changes: object) -> Scaling:
    found = Scaling(
        workload="mnist-mlp512",
        dataset="mnist",
        backend="torch",
        style="fast",
        device="cpu",
        precision="fp32",
        mode="strong",
        batch=128,
        steps=120,
        repeats=5,
        threads=1,
        nodes=1,
        layouts=layouts,
        notices=("dropout and distortions are off",),
    )
    return dataclasses.replace(found, **changes)  # type: ignore[arg-type]


def text(table: Table) -> str:
    cells = [" | ".join(cell.text for cell in row.cells) for row in table.rows]
    return "\n".join([table.title, *table.conditions, *cells, *table.notes])


def test_a_layout_is_shown_with_its_shares_and_its_losses() -> None:
    (table,) = scale_tables(answer(layout(1), layout(2)))
    shown = text(table)
    assert "1 thread per rank" in shown
    assert "45.00 % [43, 47] | 51.00 % [48, 55] | PASS, 3.0e-16 of 1e-09" in shown
    assert "dropout and distortions are off." in shown


def test_the_throughput_of_a_text_is_in_tokens() -> None:
    tokens = Estimate(1.6e6, 1.5e6, 1.7e6)
    (table,) = scale_tables(answer(*(layout(data, tokens_per_second=tokens) for data in (1, 2))))
    titles = {column.title for column in table.columns}
    assert "tokens/s" in titles and "examples/s" not in titles
    assert "1,600,000" in text(table)
    assert table.answer and table.answer.text.endswith("as many tokens/s.")


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (
            Estimate(0.45, 0.43, 0.47),
            "More devices are slower than one: the fastest layout, 2 × 1, trains 0.900× [",
        ),
        (
            Estimate(0.9, 0.8, 1.0),
            "More devices are faster than one: the fastest layout, 2 × 1, trains 1.80× [",
        ),
        (
            Estimate(0.5, 0.495, 0.505),
            "More devices are as fast as one: the fastest layout, 2 × 1, trains 1.00× [",
        ),
        (Estimate(0.6, 0.4, 0.8), "It is unclear whether more devices are faster than one: "),
        (
            Estimate(0.9, None, None),
            "It is unclear whether more devices are faster than one: the fastest layout, 2 ",
        ),
    ],
)
def test_the_answer_comes_first(share: Estimate, said: str) -> None:
    slower = layout(4, Estimate(0.1, 0.09, 0.11))
    (table,) = scale_tables(answer(layout(1), layout(2, share), slower))
    assert table.answer is not None
    assert table.answer.text.startswith(said)


def test_one_device_has_no_answer() -> None:
    (table,) = scale_tables(answer(layout(1)))
    assert table.answer is None


def test_losses_that_differ_and_runs_that_fail_are_reported() -> None:
    parted = Agreement(100, 0.5, 1e-9, 1, False, "they differ from step 1 on")
    (table,) = scale_tables(
        answer(
            layout(1),
            layout(2, agreement=parted, runs=4, failed=1, reason="failed: rank 1 was killed"),
        )
    )
    shown = text(table)
    assert "FAIL" in shown
    assert "2 × 1: they differ from step 1 on." in shown
    assert "4 + 1 failed" in shown
    assert "2 × 1: failed: rank 1 was killed" in shown


def test_nothing_run_is_no_table() -> None:
    assert scale_tables(answer()) == []


def test_the_answer_passes_only_where_every_layout_does() -> None:
    assert answer(layout(1), layout(2)).passed
    assert not answer(layout(1), layout(2, failed=1)).passed
    parted = Agreement(100, 0.5, 1e-9, 1, False, "they differ from step 1 on")
    assert not answer(layout(1), layout(2, agreement=parted)).passed


def test_the_chart_holds_points_a_straight_line_and_words() -> None:
    pytest.importorskip("altair")
    from trainmark.report.charts.scaling import scaling_chart

    chart = scaling_chart(answer(layout(1), layout(2)))
    assert chart is not None
    spec = json.dumps(chart.spec())
    assert '"kind": "perfect", "devices": 2, "rate": 50000.0' in spec
    assert spec.count('"kind": "measured"') == 2
    assert "2 × 1, 25,000 examples per second" in chart.text
    assert scaling_chart(answer()) is None
    alone = scaling_chart(answer(layout(2)))
    assert alone is not None
    assert '"kind": "perfect"' not in json.dumps(alone.spec())


def test_caveats_stand_below_with_the_layouts_that_have_them() -> None:
    busy = Caveat.BUSY_MACHINE
    odd = Caveat.RESTARTED
    (table,) = scale_tables(answer(layout(1, caveats=(busy,)), layout(2, caveats=(busy, odd))))
    assert f"busy-machine (all): {busy.meaning}." in table.notes
    assert f"restarted (2 × 1): {odd.meaning}." in table.notes
    assert not any("wide-spread" in note for note in table.notes)
