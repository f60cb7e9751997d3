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

MULTIPLY_ADD = 2
CONVOLUTIONS = 24 * 24 * 10 * (5 * 5 * 1), 8 * 8 * 20 * (5 * 5 * 10)
"""Multiply-adds of both convolutions of ``mnist-cnn``: outputs × values behind each."""
COSTS = {
    "mnist-mlp32": (
        (784 * 32 + 32) + (32 * 10 + 10),
        MULTIPLY_ADD * (784 * 32 + 32 * 10),
        # Forward, gradients of the weights, and of the input except for the first layer.
        MULTIPLY_ADD * (2 * 784 * 32 + 3 * 32 * 10),
    ),
    "mnist-cnn": (
        (25 * 10 + 10) + (250 * 20 + 20) + (320 * 50 + 50) + (50 * 10 + 10),
        MULTIPLY_ADD * (CONVOLUTIONS[0] + CONVOLUTIONS[1] + 320 * 50 + 50 * 10),
        MULTIPLY_ADD * (2 * CONVOLUTIONS[0] + 3 * (CONVOLUTIONS[1] + 320 * 50 + 50 * 10)),
    ),
}
"""Parameters, forward and training FLOP per example, derived from the shapes."""


@pytest.mark.parametrize(("name", "cost"), COSTS.items())
def test_the_layers_add_up_to_the_cost_of_their_shapes(
    name: str, cost: tuple[int, int, int]
) -> None:
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
