"""One process measures many configurations: failures, time limits and resumption; and how each is
timed."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from gpu import shared, store, stretches, subjects
from gpu.shared import SharedOptions
from gpu.stretches import Timing
from gpu.survey.configurations import configurations

from trainmark.backends import registry
from trainmark.backends.base import Options


@dataclass
class Configuration:
    """A configuration with a given outcome."""

    name: str
    error: Exception | None = None
    measured: list[str] = field(default_factory=list)

    @property
    def facts(self) -> dict[str, Any]:
        return {"name": self.name}

    def measure(self) -> dict[str, Any]:
        self.measured.append(self.name)
        if self.error is not None:
            raise self.error
        return {"samples_per_second": 1.0}


def options(folder: Path, seconds: float = 100.0) -> SharedOptions:
    return SharedOptions(folder / "rows.jsonl", "cpu", seconds, quick=True)


def freed() -> None:
    """There is nothing to free."""


def test_a_configuration_that_fails_has_a_row(tmp_path: Path) -> None:
    asked = [
        Configuration("large", MemoryError("out of memory: 80 GB\nsecond line")),
        Configuration("small"),
    ]
    assert shared.measure_all(asked, options(tmp_path), freed, time.monotonic()) == 0
    large, small = store.read_rows(tmp_path / "rows.jsonl")
    assert (large["status"], small["status"]) == ("failed", "ok")
    assert large["error"].startswith("MemoryError: out of memory: 80 GB")
    assert large["caveats"] == small["caveats"] == ["shared-process"]


def test_a_row_that_is_there_is_not_measured_again(tmp_path: Path) -> None:
    first = Configuration("first")
    second = Configuration("second")
    shared.measure_all([first], options(tmp_path), freed, time.monotonic())
    with (tmp_path / "rows.jsonl").open("a") as opened:
        opened.write('{"facts": {"name": "sec')  # as a killed process leaves it
    shared.measure_all([first, second], options(tmp_path), freed, time.monotonic())
    assert first.measured == ["first"]
    assert [row["facts"]["name"] for row in store.read_rows(tmp_path / "rows.jsonl")] == [
        "first",
        "second",
    ]


def test_what_does_not_fit_is_left_to_the_next_call(tmp_path: Path) -> None:
    long_ago = time.monotonic() - 99
    assert shared.measure_all([Configuration("late")], options(tmp_path), freed, long_ago) == 3
    assert store.read_rows(tmp_path / "rows.jsonl") == []


def test_a_row_is_kept_though_the_device_is_lost(tmp_path: Path) -> None:
    def lost() -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    asked = [Configuration("first"), Configuration("second")]
    with pytest.raises(RuntimeError, match="illegal memory access"):
        shared.measure_all(asked, options(tmp_path), lost, time.monotonic())
    assert shared.measure_all(asked, options(tmp_path), freed, time.monotonic()) == 0
    assert [each.measured for each in asked] == [["first"], ["second"]]


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(
        SystemExit, match="fake does not see the device 'cuda:7': expected one of cpu, cuda:0"
    ):
        configurations("fake", "cuda:7", quick=True)


def test_every_style_and_precision_of_a_device_is_listed() -> None:
    asked = configurations("fake", "cuda:0", quick=False)
    kinds = [(each.style, each.precision) for each in asked if each.workload == "mnist-mlp512"]
    assert kinds == [
        ("fast", "fp32"),
        ("fast", "bf16"),
        ("idiomatic", "fp32"),
        ("compiled", "fp32"),
    ]


def test_stretches_are_timed_at_synchronised_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMARK_FAKE", '{"step_seconds": 0.002}')
    subject = subjects.load("mnist-mlp128", quick=True)
    asked = Options("fast", "cpu", "fp32", seed=1)
    trainer = registry.load("fake").trainer(subject.workload, subject.model, subject.data, asked)
    trainer.load(subject.weights())
    plans = functools.partial(subject.plans, "fast")
    row = stretches.measure(trainer, plans, Timing(0.2), time.perf_counter())
    # The fake's steps take 2 ms at least; without synchronisation, they would take nearly nothing.
    assert row["step_seconds"] >= 0.0019
    assert row["n"] >= 3
    assert row["lowest"] <= row["samples_per_second"] <= row["highest"]
    assert row["samples_per_second"] == pytest.approx(4 / row["step_seconds"], rel=0.5)
