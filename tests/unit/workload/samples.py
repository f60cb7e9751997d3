"""A small workload, of which a test names only the part it is about."""

from __future__ import annotations

from typing import Any

from trainmark.workload.layers import Dense, Flatten, Layer
from trainmark.workload.losses import SoftmaxCrossEntropy
from trainmark.workload.optimizers import SGD
from trainmark.workload.pixels import Input
from trainmark.workload.schedule import Batches, Schedule
from trainmark.workload.spec import Workload

TOML = """\
name = "tiny"
title = "A tiny network"
dataset = "mnist"

[input]
shape = [28, 28, 1]

[[model]]
kind = "flatten"

[[model]]
kind = "dense"
units = 10

[loss]
kind = "softmax-cross-entropy"

[optimizer]
kind = "sgd"
learning_rate = 0.1

[batches]
size = 100

[schedule]
epochs = 2

[variants.adam]
optimizer = { kind = "adam", learning_rate = 0.001 }
"""
"""A whole workload file: 7,850 parameters."""


def a_workload(*layers: Layer, shape: tuple[int, int, int] = (4, 4, 1), **changes: Any) -> Workload:
    """A workload on images of ``shape``; without layers, one dense layer of 10."""
    fields: dict[str, Any] = {
        "name": "tiny",
        "title": "A tiny network",
        "dataset": "mnist",
        "input": Input(shape),
        "model": layers or (Flatten(), Dense(10)),
        "loss": SoftmaxCrossEntropy(),
        "optimizer": SGD(0.1),
        "batches": Batches(10),
        "schedule": Schedule(epochs=2),
    }
    return Workload(**(fields | changes))
