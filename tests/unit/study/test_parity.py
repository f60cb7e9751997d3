"""How the question is laid out in runs, with a probe that is not needed: the sides are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmark.execute.parent.plan import Side
from trainmark.execute.parent.probe import THIS, Interpreter
from trainmark.study import parity
from trainmark.workload import catalog
from trainmark.workload.layers import ChannelDropout, Dropout


def test_the_best_style_of_each_backend_on_each_device() -> None:
    other = Interpreter("old", Path("/opt/old/bin/python"))
    sides = [
        Side("torch", "idiomatic", "cpu", THIS),
        Side("torch", "fast", "cpu", THIS),
        Side("torch", "idiomatic", "cuda:0", THIS),
        Side("torch", "fast", "cuda:0", THIS),
        Side("torch", "fast", "cpu", other),
        Side("numpy", "idiomatic", "cpu", THIS),
    ]
    best = parity._in_best_style(sides)
    assert [side.title for side in best] == [
        "torch fast cpu", "torch fast cuda:0", "torch@old fast cpu", "numpy idiomatic cpu",
    ]  # fmt: skip


@pytest.mark.parametrize("name", catalog.names())
def test_nothing_is_left_to_chance(name: str) -> None:
    workload = parity.without_chance(catalog.find(name).with_schedule(steps=7))
    assert not any(isinstance(layer, Dropout | ChannelDropout) for layer in workload.model)
    assert workload.input.distortions is None
    assert (workload.schedule.protocol, workload.schedule.evaluate, workload.schedule.steps) == ("fresh", "end", 7)
    assert workload.optimizer == catalog.find(name).optimizer


@pytest.mark.parametrize(
    ("precision", "unit", "share"),
    [("fp64", 2.0**-52, 2.0**-29), ("fp32", 2.0**-23, 1.0), ("tf32", 2.0**-23, 1.0), ("bf16", 2.0**-23, 1.0)],
)
def test_the_rounding_of_a_precision(precision: str, unit: float, share: float) -> None:
    rounding = parity.rounding_of(precision)  # type: ignore[arg-type]
    assert (rounding.unit, rounding.share) == (unit, share)
