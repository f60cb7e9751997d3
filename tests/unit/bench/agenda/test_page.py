"""The page shows what was measured, and names what was not."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from gpu import store, wheels
from gpu.items import ITEMS, find
from gpu.items.best_loop import OURS
from gpu.page import writer
from gpu.page.markdown import Column, interval, table
from gpu.store import Result

from tests.unit.bench.agenda.conftest import CONTEXT

SIDE = {
    "workload": "mnist-mlp512",
    "backend": "torch",
    "style": "fast",
    "device": "cpu",
    "dataset": "mnist",
    "runs": 4,
    "trainings": 3,
    "speedup": {"ratio": 1.0, "low": None, "high": None, "verdict": "same"},
    "learning": {"verdict": "same"},
    "samples_per_second": 15_186.5,
    "mfu": 0.048,
    "joules": None,
    "training_seconds": 8.22,
    "test_accuracy": 0.972,
    "caveats": ["wide-spread"],
}
SPEEDUP = {"ratio": 33.3, "low": 24.5, "high": 45.3, "verdict": "faster"}
ROWS = [SIDE, {**SIDE, "device": "cuda:0", "speedup": SPEEDUP}]
MEASURED = Result("mnist-mlp512-torch", True, [], 90.0, CONTEXT, ROWS)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (24.5, 45.3, "33.30× [24.50, 45.30]"),
        (20.1, None, "33.30× [≥ 20.10]"),
        (None, 0.5, "33.30× [≤ 0.50]"),
    ],
)
def test_a_ratio_has_the_bounds_that_are_known(
    low: float | None, high: float | None, words: str
) -> None:
    assert interval({"ratio": 33.3, "low": low, "high": high}) == words


def section_of(page: str, name: str) -> str:
    return page.partition(f"<!-- {name}: written by bench/gpu -->")[2].partition(
        f"<!-- end of {name} -->"
    )[0]


def test_every_item_is_not_measured_at_first(tmp_path: Path) -> None:
    page = writer.write(tmp_path)
    for item in ITEMS:
        section = section_of(page, item.name)
        assert item.question in section
        assert writer.NOT_MEASURED in section
        assert "| ---" not in section


def test_a_measured_item_has_a_table_and_conditions(tmp_path: Path) -> None:
    store.write(tmp_path, "worth-it", MEASURED)
    page = writer.write(tmp_path)
    section = section_of(page, "worth-it")
    assert writer.NOT_MEASURED not in section
    row = (
        "| mnist-mlp512 | torch | fast | cuda:0 | 4 | 3 | 33.30× [24.50, 45.30] | faster | "
        "same | 15,186 |"
    )
    assert row in section
    assert (
        "cuda:0: A GPU, driver 580, CUDA 13.0; 2 cores of A CPU; Python 3.12.1, torch 2.11.0"
        in section
    )
    assert "commit 0123abcd" in section
    assert "Missing: not begun: mnist-cnn-torch," in section
    assert writer.NOT_MEASURED in section_of(page, "frameworks")


def test_what_was_tried_in_vain_is_still_not_measured(tmp_path: Path) -> None:
    store.write(
        tmp_path,
        "worth-it",
        dataclasses.replace(MEASURED, rows=[], complete=False, problems=["no GPU"]),
    )
    section = section_of(writer.write(tmp_path), "worth-it")
    assert writer.NOT_MEASURED in section
    assert "Tried: mnist-mlp512-torch (no GPU)." in section


def test_a_rehearsal_says_so(tmp_path: Path) -> None:
    store.write(
        tmp_path, "worth-it", dataclasses.replace(MEASURED, context={**CONTEXT, "quick": True})
    )
    assert "the figures mean nothing" in section_of(writer.write(tmp_path), "worth-it")


def test_text_around_the_sections_is_left_alone(tmp_path: Path) -> None:
    page = writer.write(tmp_path)
    (tmp_path / "README.md").write_text(f"Before.\n\n{page}\nAfter.\n")
    store.write(tmp_path, "worth-it", MEASURED)
    again = writer.write(tmp_path)
    assert again.startswith("Before.\n\n# Measurements on GPUs")
    assert again.endswith("\nAfter.\n")
    assert again.count("<!-- worth-it: written by bench/gpu -->") == 1


def test_how_near_fast_is_to_the_best_loop(tmp_path: Path) -> None:
    timed = {
        "status": "ok",
        "name": "gpt2-124m",
        "n": 10,
        "step_seconds": 0.03,
        "lowest": 200.0,
        "highest": 400.0,
        "units_per_example": 1024,
        "flops_per_example": 8e11,
        "prepare_seconds": 20.0,
        "loss": 9.1,
    }
    ways = {OURS: 300.0, "compiled in a graph": 400.0}
    rows = [
        {
            **timed,
            "facts": {"workload": "gpt2-124m", "candidate": name},
            "samples_per_second": speed,
        }
        for name, speed in ways.items()
    ]
    failed = {
        "facts": {"workload": "gpt2-124m", "candidate": "eager"},
        "status": "failed",
        "error": "OutOfMemoryError: 1 | 2",
    }
    on_h100 = {**CONTEXT, "device_name": "NVIDIA H100 80GB HBM3"}
    result = dataclasses.replace(
        MEASURED, measurement="gpt2-124m", rows=[*rows, failed], context=on_h100
    )
    section = find("best-loop").tables({"gpt2-124m": result})
    assert (
        "gpt2-124m: `fast` has 0.75× the speed of the best other way, compiled in a graph."
        in section
    )
    assert "| gpt2-124m | trainmark fast | 10 | 30.0 | 307,200 |" in section
    assert "32.3 %" in section, "400 × 8e11 of 989.4 TFLOP/s"
    assert "OutOfMemoryError: 1 \\| 2" in section


def test_the_page_of_this_repository_is_up_to_date() -> None:
    folder = wheels.ROOT / "docs" / "results" / "gpu"
    page = (folder / "README.md").read_text()
    for item in ITEMS:
        expected = writer.section(item, store.read(folder, item.name))
        assert section_of(page, item.name).strip() == expected, f"python bench/gpu page {folder}"


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (None, "-"),
        ({"ratio": None}, "-"),
        ({"ratio": 1.234, "low": None, "high": None}, "1.23×"),
        ({"value": 1.28, "low": 1.22, "high": 1.34}, "1.28× [1.22, 1.34]"),
    ],
)
def test_a_ratio_has_its_interval(estimate: dict[str, float] | None, text: str) -> None:
    assert interval(estimate) == text


def test_a_table_without_rows_is_no_table() -> None:
    assert table([Column("a")], []) == ""
