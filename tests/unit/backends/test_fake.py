"""The clock that can't lie: a device that works in the background shows up a reading taken too
early."""

from __future__ import annotations

import itertools
import json
import math
import time
from typing import Any

import numpy as np
import pytest
from trainmark_fake import Behaviour, FakeBackend, FakeTrainer, behaviour

from tests.unit.workload.samples import a_workload
from trainmark.backends.base import EpochPlan, Options
from trainmark.errors import AbsentDevice
from trainmark.execute.worker.timing import timed_epoch
from trainmark.workload.model import lay_out

from .samples import a_dataset, no_tick

STEPS = 20
STEP_SECONDS = 0.01
PLAN = EpochPlan((10,) * STEPS, None)
MODEL = lay_out(a_workload())


class Impatient(FakeTrainer):
    """Someone forgot to synchronise."""

    def synchronize(self) -> None:
        pass


def a_trainer(
    kind: type[FakeTrainer] = FakeTrainer, device: str = "cpu", **does: Any
) -> FakeTrainer:
    options = Options("fast", device, "fp32", 1)
    return kind(MODEL, options, Behaviour(**({"step_seconds": STEP_SECONDS} | does)))


def seconds_of_an_epoch(trainer: FakeTrainer) -> float:
    return timed_epoch(trainer, PLAN, no_tick, time.perf_counter).seconds


def test_the_measured_time_is_that_of_the_device() -> None:
    assert seconds_of_an_epoch(a_trainer()) >= STEPS * STEP_SECONDS


def test_without_synchronising_nearly_nothing_would_be_measured() -> None:
    assert seconds_of_an_epoch(a_trainer(Impatient, step_seconds=1.0)) < 0.5 * STEPS


def test_work_left_over_from_before_is_not_charged_to_the_epoch() -> None:
    trainer = a_trainer()
    trainer.begin_epoch(EpochPlan((10,) * 100, None))
    trainer.train(100, no_tick)  # a second is still queued
    seconds = seconds_of_an_epoch(trainer)
    assert STEPS * STEP_SECONDS <= seconds < 100 * STEP_SECONDS


def test_the_fake_gpu_is_faster() -> None:
    gpu = seconds_of_an_epoch(a_trainer(device="cuda:0", speedup=20.0, step_seconds=0.1))
    assert STEPS * 0.1 / 20 <= gpu < STEPS * 0.1


@pytest.mark.parametrize(
    ("log_every", "done"),
    [(None, [0, 20]), (5, [0, 1, 6, 11, 16, 20]), (8, [0, 1, 9, 17, 20]), (99, [0, 1, 20])],
)
def test_edges_lie_where_they_were_asked_for(log_every: int | None, done: list[int]) -> None:
    ticks: list[int] = []
    trainer = a_trainer(step_seconds=0.001)
    epoch = timed_epoch(
        trainer, PLAN, lambda: ticks.append(1), time.perf_counter, log_every=log_every
    )
    assert [steps for steps, _ in epoch.edges] == done
    assert len(ticks) == STEPS
    assert sum(len(trainer.read(result).losses) for result in epoch.results) == STEPS
    for (start, earlier), (end, later) in itertools.pairwise(epoch.edges):
        assert later - earlier >= (end - start) * 0.001


def test_its_loss_falls_and_its_accuracy_rises() -> None:
    trainer = a_trainer(step_seconds=0.0)
    trainer.load({})
    before = trainer.evaluate("test")
    trainer.begin_epoch(EpochPlan((100,) * 300, None))
    steps = trainer.read(trainer.train(300, no_tick))
    assert (np.diff(steps.losses) < 0).all()
    assert steps.losses[0] == pytest.approx(2.05)
    assert steps.hits.max() <= 100
    assert trainer.evaluate("test").accuracy > before.accuracy


def test_loading_starts_over_and_the_weights_come_back() -> None:
    trainer = a_trainer(step_seconds=0.0)
    weights = {"dense1.kernel": np.ones((2, 2), np.float32)}
    trainer.load(weights)
    first = trainer.evaluate("test").loss
    trainer.begin_epoch(PLAN)
    trainer.train(STEPS, no_tick)
    assert trainer.evaluate("test").loss < first
    trainer.load(trainer.weights())
    assert trainer.evaluate("test").loss == first
    assert trainer.weights().keys() == weights.keys()


@pytest.mark.parametrize(
    ("fail", "error", "message"),
    [("raise", RuntimeError, "asked to fail"), ("memory", MemoryError, "out of memory")],
)
def test_it_fails_at_the_requested_step(fail: str, error: type[Exception], message: str) -> None:
    trainer = a_trainer(step_seconds=0.0, fail=fail, at_step=3)
    trainer.begin_epoch(PLAN)
    trainer.train(3, no_tick)
    with pytest.raises(error, match=message):
        trainer.train(1, no_tick)


def test_it_fails_on_the_requested_device() -> None:
    trainer = a_trainer(step_seconds=0.0, fail="raise", only_on="cuda:0")
    trainer.begin_epoch(PLAN)
    trainer.train(STEPS, no_tick)
    trainer = a_trainer(device="cuda:0", step_seconds=0.0, fail="raise", only_on="cuda:0")
    trainer.begin_epoch(PLAN)
    with pytest.raises(RuntimeError):
        trainer.train(1, no_tick)


def test_its_loss_turns_into_nan_and_stays() -> None:
    trainer = a_trainer(step_seconds=0.0, fail="nan", at_step=2)
    trainer.begin_epoch(PLAN)
    losses = trainer.read(trainer.train(5, no_tick)).losses
    assert [math.isnan(loss) for loss in losses] == [False, False, True, True, True]


def test_its_noise_goes_to_both_outputs(capfd: pytest.CaptureFixture[str]) -> None:
    a_trainer(noise="chatter\n").begin_epoch(PLAN)
    assert tuple(capfd.readouterr()) == ("chatter\n", "chatter\n")


def test_the_environment_says_how_it_behaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINMARK_FAKE", raising=False)
    assert behaviour() == Behaviour()
    monkeypatch.setenv(
        "TRAINMARK_FAKE", json.dumps({"step_seconds": 0.5, "fail": "nan", "unknown": 1})
    )
    assert behaviour() == Behaviour(step_seconds=0.5, fail="nan")


def test_the_backend_runs_everything_on_the_devices_it_names() -> None:
    backend = FakeBackend()
    workload = a_workload()
    assert [device.id for device in backend.capabilities().devices] == ["cpu", "cuda:0"]

    def build(device: str) -> FakeTrainer:
        return backend.trainer(
            workload, lay_out(workload), a_dataset(), Options("fast", device, "fp32", 1)
        )

    assert build("cuda:0").settings() == {"asynchronous": True}
    with pytest.raises(AbsentDevice):
        build("cuda:1")
