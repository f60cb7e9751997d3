"""The real commands on a real GPU: interleaved slices, experiments on a script, a script on both
devices."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.conftest import GPU, present, require
from tests.slow import slow
from trainmark.data.locate import Located
from trainmark.record.record import Record
from trainmark.record.store import load

pytestmark = pytest.mark.timeout(600)

SCRIPT = Path(__file__).with_name("train.py")
CHANGES = ("tf32", "cuda-graphs", "compile")
WITHOUT_A_GPU = ("compile",)


@pytest.fixture(params=[slow("cpu"), GPU])
def device(request: pytest.FixtureRequest) -> str:
    """Return the device to test; on the CPU, these tests run only at night."""
    return present(request.param)


@pytest.fixture
def trainmark(tmp_path: Path, cache_home: Path, drawn: Located) -> Callable[..., str]:
    """Run a command in a separate folder, with synthetic digits, and return what it printed."""

    def run(*arguments: str) -> str:
        answer = subprocess.run(
            [sys.executable, "-m", "trainmark", *arguments],
            cwd=tmp_path,
            env={**os.environ, "XDG_CACHE_HOME": str(cache_home)},
            capture_output=True,
            text=True,
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr[-3000:]
        return answer.stdout

    return run


def side_of(record: Record) -> tuple[str | None, str | None]:
    return record.backend.style, record.device.id


@pytest.mark.parametrize("backend", ["torch", slow("jax"), slow("keras")])
def test_the_cpu_and_the_gpu_take_turns(
    backend: str, device: str, tmp_path: Path, trainmark: Callable[..., str]
) -> None:
    require(backend, device)
    devices = f"cpu,{device}" if device == GPU else device
    words = f"run mnist-mlp128 --backend {backend} --style idiomatic,fast --device {devices}"
    length = "--dataset synthetic-digits --repeats 1 --steps 400 --budget 60"
    trainmark(*words.split(), *length.split(), "--quiet", "--out", "records")
    records = load([tmp_path / "records"])
    assert {record.outcome.status for record in records} == {"ok"}
    assert len({side_of(record) for record in records}) == 2 * len(devices.split(","))
    first = [record for record in records if record.round == min(each.round for each in records)]
    sides_by_turn = sorted(
        (each.order, side_of(record)) for record in first for each in record.slices
    )
    assert len({order for order, _ in sides_by_turn}) == len(sides_by_turn), (
        "no two had the same turn"
    )
    changes = sum(one[1] != other[1] for one, other in itertools.pairwise(sides_by_turn))
    assert changes >= 2, "the sides alternate"
    for record in records:
        assert record.device.kind == ("accelerator" if record.device.id == GPU else "cpu")


def test_a_script_is_measured_on_each_device(
    device: str, tmp_path: Path, trainmark: Callable[..., str]
) -> None:
    require("torch", device)
    devices = ("cpu", device) if device == GPU else (device,)
    words = f"measure --device {','.join(devices)} --repeats 1 --steps 200 --quiet --out records --"
    trainmark(*words.split(), sys.executable, str(SCRIPT), "{device}")
    records = load([tmp_path / "records"])
    assert sorted(str(record.device.id) for record in records) == sorted(devices)
    for record in records:
        assert record.outcome.status == "ok"
        assert record.observed is not None
        assert record.observed.steps >= 200
        assert record.observed.device == record.device.id


def test_experiments_on_a_script_take_effect(device: str, trainmark: Callable[..., str]) -> None:
    require("torch", device)
    only = [word for change in CHANGES for word in ("--only", change)]
    printed = trainmark(
        *("explain", "--seconds", "60", *only, "--json", "--", sys.executable, str(SCRIPT), device),
    )
    found: dict[str, Any] = json.loads(printed)
    findings = {each["change"]: each for each in found["findings"]}
    expected = CHANGES if device == GPU else WITHOUT_A_GPU
    assert findings.keys() == {*expected}
    for finding in findings.values():
        assert finding["proof"]
        assert finding["speedup"]["value"] > 0
    why = json.dumps([found["left_out"], found["unsuitable"]])
    assert why.count("no GPU") == len(CHANGES) - len(expected)
