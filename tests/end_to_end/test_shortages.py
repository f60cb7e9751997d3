"""Real shortages on this system: memory, disk space, a clock that jumps, data that disappears."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine, wait_until
from tests.end_to_end.limits import (
    NotHere,
    control_group,
    fill,
    jumping_clock,
    make_read_only,
    small_disk,
)
from trainmark.record.store import load

NUMPY = (
    "run",
    "mnist-mlp128",
    "--backend",
    "numpy",
    "--dataset",
    "synthetic-digits",
    "--steps",
    "20",
    "--repeats",
    "1",
)


@contextlib.contextmanager
def or_skip() -> Iterator[None]:
    try:
        yield
    except NotHere as error:
        pytest.skip(str(error))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with or_skip(), small_disk(tmp_path / "disk", 256) as folder:
        yield folder


def test_too_little_memory_by_the_limit_of_a_process(command: CommandLine) -> None:
    """The parent needs less than the child, which has the data."""
    process = command.start(
        *NUMPY,
        "--threads",
        "1",
        "--out",
        str(command.out),
        before=["sh", "-c", 'ulimit -v 260000 && exec "$@"', "sh"],
        extra={"OPENBLAS_NUM_THREADS": "1"},
    )
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    (record,) = command.records()
    assert record.outcome.status == "failed"
    assert (record.outcome.reason or "").startswith("out of memory"), record.outcome


@pytest.mark.slow  # by day the limit of a process
def test_too_little_memory_by_the_control_group(command: CommandLine) -> None:
    with or_skip(), control_group(f"trainmark-test-{os.getpid()}", 150) as prefix:
        process = command.start(*NUMPY, "--threads", "1", "--out", str(command.out), before=prefix)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    (record,) = command.records()
    assert record.outcome.status == "failed"
    assert (record.outcome.reason or "").startswith(
        "out of memory: the system killed the process"
    ), record.outcome


def test_a_disk_that_fills_up_costs_no_finished_run(command: CommandLine, disk: Path) -> None:
    arguments = ("--repeats", "2", "--device", "cpu")
    command.out = disk / "out"
    process = command.start(*command.train_arguments(*arguments), fake={"step_seconds": 0.05})
    wait_until(lambda: "ok" in command.outcomes())
    filler = fill(disk)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    assert "Traceback" not in err
    assert "No space left on device" in err
    kept = Path(re.search(r"It was kept as (\S+\.json)", err)[1])  # type: ignore[index]
    assert command.outcomes() == ["ok"] and command.leftovers() == []
    (record,) = load([kept])
    assert (record.outcome.status, record.round) == ("ok", 1)
    filler.unlink()
    shutil.move(kept, command.out)
    kept.parent.rmdir()
    code, out, _ = command.train(*arguments, "--resume")
    assert code == 0 and "Nothing to do" in out


def test_a_disk_that_is_full_already(command: CommandLine, disk: Path) -> None:
    command.out = disk / "out"
    command.out.mkdir()
    fill(disk)
    code, _, err = command.train("--repeats", "1")
    assert code == 2, err
    assert "can't write to" in err and "No space left on device" in err and "Traceback" not in err


def test_a_disk_that_can_only_be_read(command: CommandLine, disk: Path) -> None:
    command.out = disk / "out"
    command.out.mkdir()
    make_read_only(disk)
    code, _, err = command.train("--repeats", "1")
    assert code == 2, err
    assert "can't write to" in err and "Read-only file system" in err and "Traceback" not in err


def test_a_clock_that_jumps_changes_no_measurement(command: CommandLine, tmp_path: Path) -> None:
    with or_skip():
        clock = jumping_clock(tmp_path)
    arguments = command.train_arguments("--repeats", "2", "--device", "cpu", "--timeout", "60")
    process = command.start(*arguments, fake={"step_seconds": 0.02}, extra=clock)
    wait_until(lambda: "ok" in command.outcomes())
    # this is in the second run, or shortly before; the clock goes backwards from here on
    (tmp_path / "jumped").touch()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    records = command.records()
    assert sorted(record.round for record in records) == [0, 1]
    for record in records:
        (epoch,) = record.epochs
        assert 0.7 < epoch.seconds < 30, "40 steps of 20 ms"
        assert record.samples is None or sorted(record.samples.t) == record.samples.t
    code, out, err = command.run_alone(*arguments, "--resume", extra=clock)
    assert code == 0 and "Nothing to do" in out, err
    code, out, err = command.run_alone("compare", str(command.out), "--json", extra=clock)
    assert code == 0, err
    assert [group["runs"] for group in json.loads(out)["groups"]] == [2]


def test_a_cache_deleted_under_a_run(command: CommandLine, tmp_path: Path) -> None:
    cache = tmp_path / "cache-home"
    there = cache / "trainmark" / command.data.directory.name
    shutil.copytree(command.data.directory, there)
    alone = CommandLine(command.data, cache, command.out)
    arguments = alone.train_arguments("--repeats", "3", "--device", "cpu")
    process = alone.start(*arguments, fake={"step_seconds": 0.05})
    wait_until(lambda: "ok" in alone.outcomes())
    shutil.rmtree(there)  # the second run has read it, or not
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    first, *_, last = alone.records()
    assert first.outcome.status == "ok", "what is finished stays"
    assert last.outcome.status == "failed"
    assert "does not contain synthetic-digits" in (last.outcome.reason or "")
    assert "trainmark data fetch" in (last.outcome.reason or "")
    assert alone.run(*arguments, "--resume")[0] == 0, "it is made again"
    assert sorted(record.round for record in alone.records() if record.outcome.status == "ok") == [
        0,
        1,
        2,
    ]


def test_the_jumping_clock_jumps(tmp_path: Path) -> None:
    """Otherwise the test with it would show nothing."""
    with or_skip():
        clock = jumping_clock(tmp_path)
    (tmp_path / "jumped").touch()
    program = [sys.executable, "-c", "import time; print(time.time())"]
    done = subprocess.run(
        program, env={**os.environ, **clock}, capture_output=True, text=True, check=True
    )
    assert -86_500 < float(done.stdout) - time.time() < -86_300
    later = subprocess.run(
        program, env={**os.environ, **clock}, capture_output=True, text=True, check=True
    )
    assert float(later.stdout) <= float(done.stdout)
