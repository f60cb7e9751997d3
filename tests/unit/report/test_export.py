"""Records as named numbers over time, and in the forms of other tools, read back by those."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest

from tests.browser.samples import a_full_record
from tests.records import a_record
from trainmark.report.export.scalars import facts, points, results, start_of


def test_every_known_number_is_a_point_on_the_record_s_clock() -> None:
    record = a_full_record()
    every = list(points(record))
    tested = [point for point in every if point.name == "epoch/test_accuracy"]
    assert [point.step for point in tested] == [1, 2, 3, 4, 5, 6]
    assert tested[0].seconds == pytest.approx(
        record.epochs[0].start_seconds + record.epochs[0].seconds
    )
    assert tested[-1].value == record.epochs[-1].test_accuracy
    assert len([point for point in every if point.name == "seen/cpu_percent"]) == 300
    assert not [point for point in every if point.name.startswith("seen/gpu")]


def test_steps_are_spread_over_their_epoch() -> None:
    record = msgspec.structs.replace(
        a_record(seconds=(4.0, 2.0)), step_losses=[1.0] * 469 + [0.5] * 469
    )
    steps = [point for point in points(record) if point.name == "step/loss"]
    assert [steps[0].step, steps[-1].step] == [0, 937]
    assert steps[468].seconds == pytest.approx(4.0)
    assert steps[-1].seconds == pytest.approx(6.0)
    assert steps[469].value == 0.5


def test_what_is_not_known_is_left_out() -> None:
    record = a_record(train_loss=math.nan, test_accuracy=None, version=None)
    assert "test_accuracy" not in results(record)
    assert "train_loss" not in results(record)
    assert "version" not in facts(record)
    assert start_of(msgspec.structs.replace(record, created="yesterday")) == 0.0


def test_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.record_writer import masked_crc32c

    from trainmark.report.export.tensorboard import to_tensorboard

    record = a_full_record()
    (folder,) = to_tensorboard([record], tmp_path)
    (file,) = folder.iterdir()
    content = file.read_bytes()
    place = 0
    events = []
    while place < len(content):
        length = int.from_bytes(content[place : place + 8], "little")
        body = content[place + 12 : place + 12 + length]
        assert masked_crc32c(body) == int.from_bytes(
            content[place + 12 + length : place + 16 + length], "little"
        )
        events.append(Event.FromString(body))
        place += 16 + length
    tested = [
        (event.step, value.simple_value, event.wall_time)
        for event in events
        for value in event.summary.value
        if value.tag == "epoch/test_accuracy"
    ]
    assert [step for step, *_ in tested] == [1, 2, 3, 4, 5, 6]
    assert tested[-1][1] == pytest.approx(record.epochs[-1].test_accuracy)
    assert tested[0][2] == pytest.approx(
        start_of(record) + record.epochs[0].start_seconds + record.epochs[0].seconds
    )


def test_mlflow_reads_what_was_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    from trainmark.report.export.mlflow import EXPERIMENT, to_mlflow

    record = a_full_record()
    failed = a_record(status="failed", round=1)
    uri = (tmp_path / "runs").as_uri()
    first, second = to_mlflow([record, failed], uri)
    client = mlflow.MlflowClient(tracking_uri=uri)
    run = client.get_run(first)
    assert run.info.run_name == record.id
    assert run.info.status == "FINISHED"
    assert client.get_run(second).info.status == "FAILED"
    assert run.data.params["workload"] == "mnist-mlp512"
    assert run.data.metrics["final/test_accuracy"] == record.final.test_accuracy
    history = client.get_metric_history(first, "epoch/test_accuracy")
    assert [metric.step for metric in sorted(history, key=lambda each: each.step)] == [
        1,
        2,
        3,
        4,
        5,
        6,
    ]
    assert client.get_experiment_by_name(EXPERIMENT) is not None
