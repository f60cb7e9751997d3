from __future__ import annotations

import dataclasses
import math

import pytest

from trainmark.errors import UnknownName, UsageError
from trainmark.study.options import read_prices, read_target
from trainmark.workload import catalog
from trainmark.workload.decode import Misfit
from trainmark.workload.schedule import Target
from trainmark.workload.spec import Workload


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("test_accuracy>=0.98", Target("test_accuracy", 0.98)),
        (" train_loss <= 5e-2 ", Target("train_loss", 0.05)),
        (None, None),
    ],
)
def test_what_is_written_is_read(text: str | None, target: Target | None) -> None:
    assert read_target(text) == target


@pytest.mark.parametrize(
    "text",
    [
        "0.98",
        "test_accuracy>0.98",
        "test_accuracy<=0.98",
        "test_loss>=1",
        "test_accuracy>=98",
        "test_loss<=e",
    ],
)
def test_what_can_not_be_read_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"test_accuracy>=0\.98"):
        read_target(text)


def test_the_nearest_quantity_is_named() -> None:
    with pytest.raises(UnknownName, match="test_accuracy"):
        read_target("test_acuracy>=0.98")


@pytest.mark.parametrize(
    ("target", "value", "met"),
    [
        (Target("test_accuracy", 0.98), 0.98, True),
        (Target("test_accuracy", 0.98), 0.9799, False),
        (Target("test_loss", 0.5), 0.5, True),
        (Target("test_loss", 0.5), 0.51, False),
        (Target("test_loss", 0.5), math.nan, False),
        (Target("test_accuracy", 0.0), None, False),
    ],
)
def test_what_reaches_it(target: Target, value: float | None, met: bool) -> None:
    assert target.met_by(value) is met


def test_a_target_changes_the_fingerprint_of_the_schedule() -> None:
    plain = catalog.find("mnist-mlp512")
    aimed = plain.with_schedule(until=Target("test_accuracy", 0.98))
    higher = plain.with_schedule(until=Target("test_accuracy", 0.99))
    assert len({each.schedule_fingerprint for each in (plain, aimed, higher)}) == 3
    assert plain.step_fingerprint == aimed.step_fingerprint
    assert Workload.from_data(aimed.to_data()) == aimed
    without = plain.to_data()
    del without["schedule"]["until"]
    assert Workload.from_data(without) == plain, "as older records tell it"


def test_a_target_needs_an_evaluation_after_each_epoch() -> None:
    schedule = catalog.find("mnist-mlp512").schedule
    with pytest.raises(Misfit, match="every-epoch"):
        dataclasses.replace(schedule, evaluate="end", until=Target("test_accuracy", 0.98))


def test_prices() -> None:
    assert read_prices(["cuda:0=2.49", "cpu=0"]) == {"cuda:0": 2.49, "cpu": 0.0}


@pytest.mark.parametrize("text", ["cuda:0", "=3", "cpu=", "cpu=-1", "cpu=nan", "cpu=inf", "cpu=2€"])
def test_an_invalid_price_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="DEVICE=PER_HOUR"):
        read_prices([text])
