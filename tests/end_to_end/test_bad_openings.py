"""A side that fails while two rounds start together: the other sides continue, and no process
remains."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.command import CommandLine, measured
from tests.slow import slow
from trainmark.record.record import Record

STEPS = 300
FULL = "CUDA out of memory. Tried to allocate 2.00 GiB. Process 12 has 78 GiB memory in use."
LOST = "CUDA error: unspecified launch failure"
GPU = {"step_seconds": 0.002, "only_on": "cuda:0"}
"""Behaviour of the fake: its training takes 0.6 s on the CPU. On the GPU, the first turn takes all
steps."""


def opened(
    command: CommandLine, *arguments: str, fake: dict[str, Any]
) -> tuple[int, str, dict[str, list[Record]]]:
    """Train on the CPU and the GPU in two rounds that start together; return code, messages and
    records by device."""
    options = ("--device", "cpu,cuda:0", "--repeats", "2", "--steps", str(STEPS), "--budget", "90")
    code, out, err = command.train(*options, *arguments, fake=fake)
    by_device: dict[str, list[Record]] = {"cpu": [], "cuda:0": []}
    for record in sorted(command.records(), key=lambda record: record.round):
        by_device[record.device.id or ""].append(record)
    assert not measured(os.getpid()), "no process remains"
    assert "Traceback" not in err
    assert " faster than" not in out, "a side that failed is never called faster"
    return code, out + err, by_device


def statuses(records: list[Record]) -> list[str]:
    return [record.outcome.status for record in records]


@pytest.mark.parametrize(
    ("fail", "seed"),
    [("raise", 1), slow("raise", 2), slow("crash", 1), ("crash", 2)],
    ids=["raise-first-round", "raise-second-round", "crash-first-round", "crash-second-round"],
)
def test_a_gpu_that_disappears_in_one_round_leaves_the_rest(
    command: CommandLine, fail: str, seed: int
) -> None:
    fake = {**GPU, "fail": fail, "message": LOST, "only_seed": seed, "at_step": 250}
    code, said, records = opened(command, fake=fake)
    assert code == 1, said
    assert statuses(records["cpu"]) == ["ok", "ok"]
    assert all(record.epochs for record in records["cpu"])
    failed = records["cuda:0"].pop(seed - 1)
    assert failed.outcome.status == "failed"
    assert (LOST if fail == "raise" else "SIGSEGV") in (failed.outcome.reason or "")
    assert (failed.outcome.reason or "") in said
    assert "trainmark doctor tests" in said, "what to do"
    assert statuses(records["cuda:0"]) == ["ok"], "the process of the other round continues"


@pytest.mark.parametrize("step", [0, 100], ids=["first-step", "hundredth-step"])
def test_a_gpu_that_others_fill_leaves_the_cpu(command: CommandLine, step: int) -> None:
    fake = {**GPU, "fail": "raise", "message": FULL, "at_step": step}
    code, said, records = opened(command, fake=fake)
    assert code == 1, said
    assert statuses(records["cpu"]) == ["ok", "ok"]
    assert statuses(records["cuda:0"]) == ["failed", "failed"]
    for record in records["cuda:0"]:
        assert (record.outcome.reason or "").startswith(
            f"out of memory: {FULL.rstrip('.')}; close other programs"
        )
    assert (
        "there is nothing to compare it with. No run of fake fast cuda:0 finished (2 tried)."
        in said
    )


def test_a_waiting_process_of_the_second_round_may_die(
    command: CommandLine, tmp_path: Path
) -> None:
    fake = {
        **GPU,
        "fail": "kill-waiting",
        "only_seed": 2,
        "at_step": 250,
        "reached": str(tmp_path / "reached"),
    }
    code, said, records = opened(command, fake=fake)
    assert code == 1, said
    assert statuses(records["cpu"]) == ["ok", "ok"]
    assert statuses(records["cuda:0"]) == ["ok", "failed"]
    assert "SIGKILL" in (records["cuda:0"][1].outcome.reason or "")


def test_a_gpu_that_hangs_ends_by_the_timeout(command: CommandLine) -> None:
    fake = {**GPU, "fail": "hang", "only_seed": 1, "at_step": 250}
    code, said, records = opened(command, "--timeout", "12", fake=fake)
    assert code == 1, said
    assert statuses(records["cpu"]) == ["ok", "ok"]
    assert statuses(records["cuda:0"]) == ["timeout", "ok"]


def test_a_driver_without_devices_is_wrong_usage(command: CommandLine) -> None:
    code, said, records = opened(command, fake={"has_gpu": False})
    assert code == 2
    assert "does not see the device 'cuda:0': expected one of cpu. `trainmark list devices`" in said
    assert not any(records.values())
