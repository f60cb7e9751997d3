"""One table by machine. The hardware is made up: plausible records with other machines."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tests.records import rounds, write_all
from trainmark.cli.main import run
from trainmark.record.record import DeviceRef, Record
from trainmark.record.store import load
from trainmark.report.machines_table import machines_table
from trainmark.workload import catalog

G5 = {"instance": "g5.xlarge", "region": "eu-west-1"}


def on(
    hour: int,
    name: str,
    seconds: list[float],
    *,
    gpu: str | None = None,
    price: float | None = None,
    **machine: Any,
) -> Iterator[Record]:
    device = DeviceRef("cuda:0", gpu, "accelerator") if gpu else None
    for record in rounds(seconds, group=f"plan-{hour}"):
        changed = structs.replace(record.machine, name=name, **machine)
        yield structs.replace(
            record,
            id=f"{hour}-{record.id}",
            created=record.created.replace("T10", f"T{hour}"),
            machine=changed,
            device=device or record.device,
            price_per_hour=price,
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    records: list[Record] = [
        *on(10, "vm", [4.0, 4.1, 3.9], price=0.1),
        *on(11, "vm", [2.0, 2.1, 1.9], cpu="EPYC 7R32", usable_cores=8, labels=G5, price=1.0),
        *on(
            12,
            "vm",
            [0.5, 0.51, 0.49],
            cpu="EPYC 7R32",
            usable_cores=8,
            labels=G5,
            price=1.0,
            gpu="NVIDIA A10G",
        ),
        *on(13, "mac", [3.0, 3.1, 2.9], cpu="Apple M4", architecture="arm64", usable_cores=10),
    ]
    return write_all(tmp_path / "out", records)


def test_each_machine_has_a_row_with_its_hardware_and_price(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", str(folder), "--by", "machine", "--format", "markdown"]) == 0
    text = capsys.readouterr().out
    rows = [
        [cell.strip(" *") for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if "| **" in line
    ]
    head = next(line for line in text.splitlines() if line.startswith("| machine |"))
    titles = [cell.strip() for cell in head.strip("|").split("|")]
    table = [dict(zip(titles, row, strict=True)) for row in rows if len(row) == len(titles)]
    told = [
        [row[name] for name in ("machine", "computed on", "cores", "instance", "price per hour")]
        for row in table
    ]
    assert told == [
        ["vm (1)", "Xeon 8481C", "2", "-", "0.100"],
        ["vm (2)", "EPYC 7R32", "8", "instance=g5.xlarge, region=eu-west-1", "1.00"],
        ["mac", "Apple M4", "10", "-", "-"],
        ["vm (2)", "NVIDIA A10G (EPYC 7R32)", "8", "instance=g5.xlarge, region=eu-west-1", "1.00"],
    ]
    assert [row["speed-up"].split()[0] for row in table] == [
        "reference",
        "2.00×",
        "1.33×",
        "reference",
    ]
    assert {"samples per s", "test acc.", "cost", "learns"} <= set(titles)
    assert "Welch's 95 % interval" in text
    assert "paired by round" not in text
    assert "4.00×" not in text, "of cuda:0 against cpu on one machine, which is another question"
    assert "CPUs are compared with CPUs, accelerators with accelerators" in text


def test_the_numbered_name_is_a_baseline(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "compare",
        str(folder),
        "--by",
        "machine",
        "--baseline",
        "machine=vm (2)",
        "--format",
        "csv",
    ]
    assert run(words) == 0
    text = capsys.readouterr().out
    rows = list(csv.DictReader(io.StringIO(text[text.index("position,") :])))
    assert [row["machine"] for row in rows if row["reference"] == row["position"]] == [
        "vm (2)",
        "vm (2)",
    ]
    (mac,) = (row for row in rows if row["machine"] == "mac")
    assert float(mac["speedup_ratio"]) == pytest.approx(2 / 3, rel=0.02)
    assert rows[1]["instance"] == "instance=g5.xlarge, region=eu-west-1"
    assert rows[1]["cost_price_per_hour"] == "1.0"


def test_pairs_within_a_round_are_still_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_all(tmp_path, rounds([2.0, 2.1, 1.9]) + rounds([1.0, 1.05, 0.95], device="cuda:0"))
    assert run(["compare", str(tmp_path), "--format", "markdown"]) == 0
    assert "paired by round" in capsys.readouterr().out


def test_published_figures_are_next_to_each_machine(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    real = next(
        record for record in load([Path("docs/results/main-job")]) if record.backend.style == "fast"
    )
    workload = catalog.find(real.workload.name)
    assert workload.published is not None
    published = workload.scheduled_as(workload.published.runs[0])
    real = structs.replace(
        real,
        workload=structs.replace(
            real.workload,
            schedule_fingerprint=published.schedule_fingerprint,
            spec=published.to_data(),
        ),
    )
    other = structs.replace(
        real, id="x", machine=structs.replace(real.machine, name="made up for this test")
    )
    write_all(tmp_path, [real, other])
    assert (
        run(["compare", str(tmp_path), "--by", "machine", "--published", "--format", "markdown"])
        == 0
    )
    text = capsys.readouterr().out
    assert "torch fast on cpu of vm: compared with the published figures" in text
    assert "torch fast on cpu of made up for this test: time" in text


def test_a_users_commands_have_rows_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(
            [
                "measure",
                "--repeats",
                "1",
                "--name",
                "nothing",
                "--out",
                str(tmp_path),
                "--json",
                "--",
                "true",
            ]
        )
        == 0
    )
    assert run(["compare", str(tmp_path), "--by", "machine", "--format", "markdown"]) == 0
    out = capsys.readouterr().out
    cpu = load([tmp_path])[0].machine.cpu
    assert f"| {cpu} |" in out
    assert "- 1 run each" in out


def test_the_page_says_which_instances(folder: Path) -> None:
    table = machines_table(load([folder]))
    assert [column.title for column in table.columns] == ["what", "vm (1)", "vm (2)", "mac"]
    rows = {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in table.rows}
    assert rows["labels ≠"] == ["not known", "instance=g5.xlarge, region=eu-west-1", "not known"]
    assert rows["price per hour ≠"] == ["0.100", "1.00", "not known"]
