"""The layer table of a workload, and one record."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from tests.records import a_record
from trainmark.record.caveats import Caveat
from trainmark.record.record import Outcome, Record
from trainmark.report.console import draw_all
from trainmark.report.layer_table import layer_data, layer_table
from trainmark.report.record_table import record_tables
from trainmark.workload import catalog

# Parameters, forward and training FLOP per example, computed by hand from the published networks.
COSTS = {
    "mnist-mlp32": (25_450, 50_816, 102_272),
    "mnist-mlp128": (109_386, 218_368, 454_400),
    "mnist-cnn": (21_840, 961_000, 2_595_000),
    "mnist-mlp512": (669_706, 1_337_344, 3_209_216),
    "cifar10-cnn": (1_068_298, 36_941_568, 105_295_104),
}


@pytest.mark.parametrize(("name", "cost"), COSTS.items())
def test_the_layers_add_up_to_the_specified_cost(name: str, cost: tuple[int, int, int]) -> None:
    model = layer_data(catalog.find(name))["model"]
    assert (
        model["parameters"],
        model["forward_flops_per_example"],
        model["training_flops_per_example"],
    ) == cost
    for total, key in zip(
        cost, ("parameters", "forward_flops_per_example", "training_flops_per_example"), strict=True
    ):
        assert sum(layer[key] for layer in model["layers"]) == total


def test_the_table_has_every_layer_and_a_total() -> None:
    workload = catalog.find("mnist-cnn")
    table = layer_table(workload)
    assert len(table.rows) == 1 + len(workload.model) + 1
    assert [cell.text for cell in table.rows[1].cells] == [
        "conv2d1", "24 × 24 × 10", "5 × 5 × 1 × 10", "260", "288 kFLOP", "576 kFLOP",
    ]  # fmt: skip
    assert table.rows[-1].cells[3].text == "21,840"


def view(record: Record) -> str:
    file = io.StringIO()
    console = Console(width=120, file=file, highlight=False)
    draw_all(console, record_tables(record))
    return file.getvalue()


def test_a_record_is_readable() -> None:
    text = view(a_record(device="cuda:0", caveats=[Caveat.PARTIAL_DATASET]))
    for said in (
        "mnist-mlp512, numpy fast on cuda:0: ok",
        "NVIDIA H200",
        "seed 0, repeat 0, round 0",
        "4.00 s",
        "15.0k",
        "98.00 %",
        "partial-dataset: only part of the dataset was available",
    ):
        assert said in text, said


def test_a_single_epoch_is_not_called_steady() -> None:
    text = view(a_record(seconds=(4.0,)))
    assert "the only whole one" in text
    assert "one-epoch: a single epoch" in text
    assert "steady" not in text
    assert "median of the steady epochs" in view(a_record(seconds=(4.0, 2.0)))


def test_a_failed_record_says_why() -> None:
    outcome = Outcome("diverged", "loss is NaN at step 873", 873, 0.0123, "Traceback\n  boom\n")
    text = view(a_record(seconds=(), outcome=outcome, train_loss=math.nan))
    for said in (
        "diverged",
        "loss is NaN at step 873",
        "step 873; the loss before it was 0.01230",
        "boom",
        "No epoch",
        "NaN",
    ):
        assert said in text, said
