"""The real commands on a real GPU: slices in turns, experiments on a script, a script on both devices."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.conftest import GPU, require
from tests.slow import slow
from trainmark.record.record import Record
from trainmark.record.store import load

pytestmark = pytest.mark.timeout(600)

SCRIPT = Path(__file__).with_name("train.py")
NEED_A_GPU = ("tf32", "cuda-graphs")


def trainmark(*arguments: str, folder: Path) -> str:
    """Run a command in a folder and return what it printed."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    answer = subprocess.run(
        [sys.executable, "-m", "trainmark", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr[-3000:]
    return answer.stdout


def side_of(record: Record) -> tuple[str | None, str | None]:
    return record.backend.style, record.device.id


@pytest.mark.parametrize("backend", ["torch", slow("jax"), slow("keras")])
def test_the_cpu_and_the_gpu_take_turns(backend: str, device: str, tmp_path: Path) -> None:
    require(backend, device)
    devices = f"cpu,{device}" if device == GPU else device
    trainmark(
        *(
            "run",
            "mnist-mlp128",
            "--backend",
            backend,
            "--style",
            "idiomatic,fast",
            "--device",
            devices,
        ),
        *(
            "--dataset",
            "synthetic-digits",
            "--repeats",
            "1",
            "--steps",
            "400",
            "--budget",
            "6",
            "--quiet",
        ),
        *("--out", "records"),
        folder=tmp_path,
    )
    records = load([tmp_path / "records"])
    assert {record.outcome.status for record in records} == {"ok"}
    assert len({side_of(record) for record in records}) == 2 * len(devices.split(","))
    first = [record for record in records if record.round == min(each.round for each in records)]
    sides_by_turn = sorted((each.order, side_of(record)) for record in first for each in record.slices)
    assert len({order for order, _ in sides_by_turn}) == len(sides_by_turn), "no two had the same turn"
    changes = sum(one[1] != other[1] for one, other in itertools.pairwise(sides_by_turn))
    assert changes >= 2, "the sides alternate"
    for record in records:
        assert record.device.kind == ("accelerator" if record.device.id == GPU else "cpu")


@pytest.mark.parametrize("change", [slow("compile"), *NEED_A_GPU])
def test_an_experiment_on_a_script_takes_effect(change: str, device: str, tmp_path: Path) -> None:
    require("torch", device)
    printed = trainmark(
        *(
            "explain",
            "--seconds",
            "20",
            "--only",
            change,
            "--json",
            "--",
            sys.executable,
            str(SCRIPT),
            device,
        ),
        folder=tmp_path,
    )
    found: dict[str, Any] = json.loads(printed)
    if change in NEED_A_GPU and device != GPU:
        assert "no GPU" in json.dumps([found["left_out"], found["unsuitable"]])
        return
    (finding,) = [each for each in found["findings"] if each["change"] == change]
    assert finding["proof"]
    assert finding["speedup"]["value"] > 0


def test_a_script_is_measured_on_each_device(device: str, tmp_path: Path) -> None:
    require("torch", device)
    devices = ("cpu", device) if device == GPU else (device,)
    trainmark(
        *(
            "measure",
            "--device",
            ",".join(devices),
            "--repeats",
            "1",
            "--steps",
            "200",
            "--quiet",
            "--out",
            "records",
        ),
        *("--", sys.executable, str(SCRIPT), "{device}"),
        folder=tmp_path,
    )
    records = load([tmp_path / "records"])
    assert sorted(str(record.device.id) for record in records) == sorted(devices)
    for record in records:
        assert record.outcome.status == "ok"
        assert record.observed is not None
        assert record.observed.steps >= 200
        assert record.observed.device == record.device.id
