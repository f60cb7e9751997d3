"""A trial on the machine that trains it, and the error if something is missing there."""

from __future__ import annotations

import dataclasses
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.study.sweep.samples import SEEN, a_plan
from trainmark.data.locate import Located
from trainmark.execute.parent.plan import Run
from trainmark.execute.parent.task import Task
from trainmark.record import codec
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record
from trainmark.study.sweep import ray_cleanup
from trainmark.study.sweep.trial import EpochReporter, Report, train_here


def trained(task: Task[Run], reporter: EpochReporter | None = None) -> Record:
    (text,) = train_here(task, SEEN, reporter or EpochReporter(lambda _: None, lambda: False))
    return codec.decode(text, "a trial")


def test_a_trial_is_an_ordinary_run(drawn: Located) -> None:
    record = trained(a_plan(drawn, "learning_rate=0.05").tasks[0])
    assert record.outcome.status == "ok", record.outcome
    assert (record.group.kind, record.group.trial, record.group.values) == (
        "sweep",
        1,
        {"learning_rate": 0.05},
    )
    assert record.workload.spec["optimizer"]["learning_rate"] == 0.05
    assert len(record.step_losses) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sha256": "0" * 64}, "differs: expected sha256 0000"),
        ({"name": "mnist", "directory": Path("/no/such/folder")}, "mnist"),
    ],
    ids=["other bytes", "nothing"],
)
def test_missing_data_fail_the_trial_and_name_the_node(
    drawn: Located,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    change: dict[str, object],
    said: str,
) -> None:
    monkeypatch.delenv("TRAINMARK_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    elsewhere = dataclasses.replace(drawn, **change)  # type: ignore[arg-type]
    record = trained(a_plan(elsewhere, "seed=1").tasks[0])
    assert record.outcome.status == "failed"
    assert (record.outcome.reason or "").startswith(f"on {platform.node()}: ")
    assert said in (record.outcome.reason or "")
    assert record.group.trial == 1


def test_every_epoch_but_the_last_is_reported(drawn: Located) -> None:
    reports: list[Report] = []
    trained(
        a_plan(drawn, "seed=1", epochs=3).tasks[0], EpochReporter(reports.append, lambda: False)
    )
    assert [report["epoch"] for report in reports] == [1, 2]
    assert all(0 < report["test_accuracy"] < 1 for report in reports)


def test_a_stopped_trial_is_a_result_and_says_so(
    drawn: Located, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINMARK_FAKE", '{"step_seconds": 0.01}')
    reports: list[Report] = []
    record = trained(
        a_plan(drawn, "seed=1", epochs=50).tasks[0],
        EpochReporter(reports.append, lambda: bool(reports)),
    )
    assert record.outcome.status == "ok" and Caveat.STOPPED_EARLY in record.caveats
    assert 1 <= len(record.epochs) < 50


def test_how_many_trials_fit_on_a_node() -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    from trainmark.study.sweep.tuning import Resources

    node = {"CPU": 8.0, "GPU": 1.0}
    assert Resources(1, 0).fit(node) == 8
    assert Resources(3, 0).fit(node) == 2
    assert Resources(1, 1 / 3).fit(node) == 3
    assert Resources(4, 0.25).fit(node) == 2
    assert Resources(1, 2).fit(node) == 0
    assert Resources(0.5, 0).fit({"CPU": 1.0}) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found by /proc")
def test_the_cleanup_ends_processes_with_open_files(tmp_path: Path) -> None:
    folder = tmp_path / "ray"
    other = tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    code = (
        "import sys, time; file = open(sys.argv[1], 'w'); print('open', flush=True); "
        "time.sleep(300)"
    )

    def holder(file: Path) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None and process.stdout.readline() == "open\n"
        return process

    ended = holder(folder / "log")
    stranger = holder(other / "log")
    spared = holder(folder / "own")
    ray_cleanup.end_and_remove(folder, spared.pid)
    try:
        assert ended.wait(120) == -9
        assert stranger.poll() is None and spared.poll() is None
        assert not folder.exists() and other.exists()
    finally:
        for process in (ended, stranger, spared):
            process.kill()
            process.communicate()
