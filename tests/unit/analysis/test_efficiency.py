from __future__ import annotations

from typing import Any

import pytest

from tests.records import a_record, rounds
from trainmark.analysis import datasheet
from trainmark.analysis.comparison import compare
from trainmark.analysis.efficiency import efficiency, peaks_by_place
from trainmark.record.record import Energy, Peaks
from trainmark.report.csv_text import to_csv
from trainmark.report.record_table import record_tables
from trainmark.report.tables import comparison_markdown, tables_of

PEAKS = Peaks(2e11, 2e10, {"created": "2026-11-21T10:00:00+00:00"})


def test_a_share_of_the_measured_peak() -> None:
    record = a_record(seconds=(4.0, 2.0, 2.0), peaks=PEAKS)
    found = efficiency(record, 30_000.0, peaks_by_place([record]))
    assert found is not None
    flops = record.model.training_flops_per_example
    assert found.flops_per_second == 30_000 * flops
    assert found.mfu == pytest.approx(30_000 * flops / 2e11)
    assert found.measured_by == "numpy"
    assert found.datasheet_flops_per_second is None


def test_the_roofline_is_the_slower_of_products_and_traffic() -> None:
    record = a_record(seconds=(4.0, 2.0, 2.0), peaks=PEAKS)
    batch = 60_000 / 469
    found = efficiency(record, 30_000.0, peaks_by_place([record]))
    memory = a_record(seconds=(4.0, 2.0, 2.0), peaks=Peaks(2e11, 1e9))
    bound = efficiency(memory, 30_000.0, peaks_by_place([memory]))
    assert found is not None
    assert bound is not None
    assert found.roofline_seconds == pytest.approx(
        batch * record.model.training_flops_per_example / 2e11
    )
    assert bound.roofline_seconds == pytest.approx(
        batch * record.model.training_flops_per_example / bound.intensity / 1e9
    )
    assert bound.gap == pytest.approx(batch / 30_000 / bound.roofline_seconds)


def test_without_a_peak_there_is_no_share() -> None:
    record = a_record()
    assert efficiency(record, 30_000.0, peaks_by_place([record])) is None
    assert compare([record]).groups[0].efficiency is None


@pytest.mark.parametrize("nothing", [0.0, -1.0, float("nan")])
def test_a_limit_that_no_device_has_is_none(nothing: float) -> None:
    record = a_record(peaks=Peaks(nothing, 1e10))
    assert efficiency(record, 30_000.0, peaks_by_place([record])) is None
    record = a_record(peaks=Peaks(1e11, nothing))
    found = efficiency(record, 30_000.0, peaks_by_place([record]))
    assert found is not None and found.mfu > 0
    assert found.roofline_seconds is None


@pytest.mark.parametrize("pace", [None, 0.0])
def test_without_a_pace_there_is_no_share(pace: float | None) -> None:
    record = a_record(peaks=PEAKS)
    assert efficiency(record, pace, peaks_by_place([record])) is None


def test_all_frameworks_share_the_highest_peak_of_a_device() -> None:
    records = [
        *rounds([2.0] * 3, backend="numpy", peaks=Peaks(1e11, 3e10)),
        *rounds([1.0] * 3, backend="torch", peaks=Peaks(2e11, 1e10)),
    ]
    groups = compare(records).groups
    assert [group.efficiency.peak_flops_per_second for group in groups if group.efficiency] == [
        2e11,
        2e11,
    ]
    assert {group.efficiency.measured_by for group in groups if group.efficiency} == {"torch"}


@pytest.mark.parametrize(
    "changes", [{"precision": "fp64"}, {"device": "cuda:0"}, {"machine": "other"}, {"threads": 1}]
)
def test_limits_of_another_place_do_not_count(changes: dict[str, Any]) -> None:
    groups = compare(
        [*rounds([2.0] * 3, peaks=PEAKS), *rounds([1.0] * 3, backend="torch", **changes)]
    ).groups
    assert [group.efficiency is None for group in groups] == [False, True]


def test_the_denominator_is_printed() -> None:
    comparison = compare(rounds([2.0] * 3, peaks=PEAKS))
    assert "200 GFLOP/s that matrix products of numpy reach on cpu in fp32" in comparison_markdown(
        comparison
    )


def test_each_peak_is_listed_with_its_conditions_and_date() -> None:
    busy = Peaks(1e11, 2e10, {"created": "2026-11-20T11:30:00+01:00", "load_before": 0.5})
    text = comparison_markdown(
        compare([*rounds([2.0] * 3, peaks=PEAKS), *rounds([3.0] * 3, threads=1, peaks=busy)])
    )
    assert "reach on cpu in fp32, 2 threads, measured on 2026-11-21 10:00 UTC" in text
    assert (
        "1 thread, measured on 2026-11-20 10:30 UTC while other programs used the machine or "
        "the device" in text
    )


@pytest.mark.parametrize(
    "told", [{"disturbed": True}, {"load_before": 0.5}], ids=["a shared GPU", "an older record"]
)
def test_a_share_of_a_disturbed_peak_is_an_upper_limit(
    told: dict[str, Any],
) -> None:
    records = rounds([2.0] * 3, peaks=Peaks(2e11, 2e10, told))
    comparison = compare(records)
    assert comparison.groups[0].efficiency is not None
    assert comparison.groups[0].efficiency.disturbed
    (table,) = tables_of(comparison)
    assert "≤ 49 %" in {cell.text for cell in table.rows[0].cells}
    assert any(note.startswith("≤: other programs used") for note in table.notes)
    told_of_one = {
        row.cells[0].text: row.cells[1].text
        for each in record_tables(records[0])
        for row in each.rows
    }
    assert told_of_one["MFU"] == "≤ 49 %"
    assert told_of_one["gap"].startswith("≥ ")


def test_an_undisturbed_peak_gives_a_share_without_a_note() -> None:
    (table,) = tables_of(compare(rounds([2.0] * 3, peaks=PEAKS)))
    assert "48.1 %" in {cell.text for cell in table.rows[0].cells}
    assert not any("≤" in note for note in table.notes)


def test_a_lower_disturbed_peak_of_another_framework_is_ignored() -> None:
    busy = rounds([2.0] * 3, backend="torch", peaks=Peaks(1e11, 2e10, {"disturbed": True}))
    groups = compare([*rounds([2.0] * 3, peaks=PEAKS), *busy]).groups
    assert [group.efficiency.disturbed for group in groups if group.efficiency] == [False, False]


def test_the_datasheet_peak_is_next_to_the_measured_one() -> None:
    comparison = compare(rounds([2.0] * 3, device="cuda:0", peaks=Peaks(5e13, 4e12)))
    found = comparison.groups[0].efficiency
    assert found is not None
    assert found.datasheet_flops_per_second == 67e12
    assert "datasheet: 67.0 TFLOP/s" in comparison_markdown(comparison)


@pytest.mark.parametrize(
    ("name", "teraflops"),
    [
        ("NVIDIA H200", 989.4),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None),
        ("NVIDIA H100 80GB HBM3", 989.4),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA A100-SXM4-40GB", 312),
        ("NVIDIA A100-SXM4-80GB", 312),
        ("Tesla T4", 65),
        ("NVIDIA L4", 121),
        ("NVIDIA L40S", 362),
        ("NVIDIA GeForce RTX 4090", 165.2),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA A10G", None),
        (None, None),
    ],
)
def test_datasheets_are_of_exactly_that_model(name: str | None, teraflops: float | None) -> None:
    assert datasheet.find(name).get("fp16") == (teraflops and teraflops * 1e12)


def test_money_and_energy() -> None:
    cheap = rounds(
        [10.0] * 3, device="cpu", price_per_hour=0.1, energy=Energy(500.0, "RAPL, CPU packages")
    )
    dear = rounds(
        [1.0] * 3, device="cuda:0", price_per_hour=3.6, energy=Energy(None, "NVML energy counter")
    )
    comparison = compare([*cheap, *dear])
    cpu, gpu = comparison.groups
    assert cpu.cost.money == pytest.approx(24 * 0.1 / 3600)
    assert gpu.cost.money == pytest.approx(6 * 3.6 / 3600)
    assert cpu.cost.money_per_million_samples == pytest.approx(24 * 0.1 / 3600 / 0.18)
    assert (cpu.cost.joules, gpu.cost.joules) == (500.0, None)
    assert cpu.cost.joules_per_million_samples == pytest.approx(500 / 0.18)
    text = comparison_markdown(comparison)
    assert "cheapest: numpy fast on cpu" in text
    assert "500 J" in text


def test_runs_that_broke_off_did_not_come_cheap() -> None:
    whole = rounds([1.0] * 3, price_per_hour=3.6)
    broken = [
        a_record(
            round=number, seconds=(1.0,), status="diverged", price_per_hour=3.6, test_accuracy=None
        )
        for number in (3, 4, 5, 6)
    ]
    assert compare([*whole, *broken]).groups[0].cost.money == pytest.approx(6 * 3.6 / 3600)


def test_without_a_price_nothing_is_cheap() -> None:
    comparison = compare([*rounds([2.0] * 3), *rounds([1.0] * 3, device="cuda:0")])
    assert {group.cost.money for group in comparison.groups} == {None}
    assert "cheapest" not in comparison_markdown(comparison)


def test_every_row_of_csv_has_the_same_columns() -> None:
    comparison = compare(
        [*rounds([2.0] * 3, peaks=PEAKS), *rounds([1.0] * 3, backend="torch", threads=1)]
    )
    text = to_csv(tables_of(comparison))
    header, first, second = text.splitlines()
    assert "efficiency_mfu" in header
    assert header.count(",") == first.count(",") == second.count(",")


def test_rounds_without_training_do_not_hide_the_efficiency() -> None:
    before = a_record(seconds=(), peaks=None, round=3)
    group = compare([before, *rounds([2.0] * 3, peaks=PEAKS)]).groups[0]
    assert group.efficiency is not None
