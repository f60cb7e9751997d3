"""Observations of a run from outside, and the options for it."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine
from trainmark.record.caveats import Caveat

SLOW = {"step_seconds": 0.1}


def test_samples_cover_the_run_without_a_gap(command: CommandLine) -> None:
    code, *_ = command.train("--repeats", "1", "--device", "cpu", fake=SLOW)
    assert code == 0
    (record,) = command.records()
    samples = record.samples
    (epoch,) = record.epochs
    assert samples is not None
    assert samples.t[0] < epoch.start_seconds
    assert samples.t[-1] >= epoch.start_seconds + epoch.seconds
    assert max(later - earlier for earlier, later in pairwise(samples.t)) < epoch.seconds / 2
    assert samples.tree_cpu_percent is not None
    assert samples.tree_resident_bytes is not None
    assert max(size or 0 for size in samples.tree_resident_bytes) > 10_000_000
    assert samples.cpu_percent is not None
    assert len(samples.cpu_percent[1]) == os.cpu_count()
    assert epoch.tree_pss_bytes is None or epoch.tree_pss_bytes > 5_000_000


def test_what_a_killed_run_was_seen_to_do_is_kept(command: CommandLine) -> None:
    command.train(
        "--repeats",
        "1",
        "--device",
        "cpu",
        fake={"step_seconds": 0.05, "fail": "kill", "at_step": 20},
    )
    (record,) = command.records()
    assert record.outcome.status == "failed"
    assert record.samples is not None
    assert record.samples.t[-1] > 0


def test_a_run_that_dies_at_once_has_a_record(command: CommandLine) -> None:
    command.train("--repeats", "1", "--device", "cpu", fake={"fail": "exit", "at_step": 0})
    (record,) = command.records()
    assert record.outcome.status == "failed"


def test_limits_are_measured_once_and_kept_in_every_record(command: CommandLine) -> None:
    train = [
        "run",
        "mnist-mlp128",
        "--backend",
        "numpy",
        "--dataset",
        "synthetic-digits",
        "--out",
        str(command.out),
    ]
    code, _, err = command.run(*train, "--steps", "20", "--repeats", "1")
    assert code == 0, err
    (record,) = command.records()
    assert record.peaks is not None
    assert record.peaks.matmul_flops_per_second is not None
    assert record.peaks.matmul_flops_per_second > 1e9
    assert record.peaks.copy_bytes_per_second is not None
    assert record.peaks.conditions["backend"] == "numpy"
    code, out, _ = command.run("show", str(next(command.out.glob("*.json"))))
    assert code == 0
    assert "MFU" in out
    assert "in matrix products of numpy, measured on 20" in out


def test_a_run_ends_at_its_target(command: CommandLine) -> None:
    code, out, err = command.train(
        "--repeats",
        "2",
        "--device",
        "cpu",
        "--steps",
        "4000",
        "--until",
        "test_accuracy>=0.97",
        fake={"step_seconds": 1e-4},
    )
    assert code == 0, err
    for record in command.records():
        assert record.final.test_accuracy is not None
        assert record.final.test_accuracy >= 0.97
        before = [epoch.test_accuracy for epoch in record.epochs[:-1]]
        assert all(accuracy is not None and accuracy < 0.97 for accuracy in before)
        assert record.final.time_to_target_seconds == pytest.approx(
            sum(epoch.seconds for epoch in record.epochs)
        )
        assert sum(epoch.steps for epoch in record.epochs) < 4000
    assert "2 of 2" in out
    assert "to target" in command.run("compare", str(command.out), "--legend")[1]


def test_a_target_that_was_missed(command: CommandLine) -> None:
    code, out, _ = command.train(
        "--repeats", "1", "--device", "cpu", "--until", "test_accuracy>=0.999"
    )
    assert code == 0
    (record,) = command.records()
    assert record.final.time_to_target_seconds is None
    assert Caveat.TARGET_MISSED in record.caveats
    assert "0 of 1" in out


def test_a_target_needs_runs_that_start_anew(command: CommandLine) -> None:
    code, _, err = command.train("--until", "test_accuracy>=0.9", "--protocol", "continued")
    assert code == 2
    assert "continued protocol" in err


def test_a_target_that_can_not_be_read(command: CommandLine) -> None:
    code, _, err = command.train("--until", "test_acuracy>=0.9")
    assert code == 2
    assert "test_accuracy" in err


def test_prices_make_money(command: CommandLine) -> None:
    code, out, _ = command.train(
        "--repeats",
        "3",
        "--device",
        "cpu,cuda:0",
        "--price",
        "cpu=0.1",
        "--price",
        "cuda:0=36",
        fake={"step_seconds": 0.01},
    )
    assert code == 0
    assert "cheapest: fake fast on cpu" in out
    record = command.records()[0]
    assert record.price_per_hour == 0.1


def test_a_price_of_what_will_not_run(command: CommandLine) -> None:
    code, _, err = command.train("--device", "cpu", "--price", "cuda:0=36")
    assert code == 2
    assert "--price is given for 'cuda:0'" in err


def test_known_devices_are_next_to_it(command: CommandLine) -> None:
    command.train("--repeats", "1", "--device", "cpu")
    code, out, err = command.run("compare", str(command.out), "--reference", "--json")
    assert code == 0
    assert isinstance(json.loads(out)["references"], list), err


def test_the_record_of_a_machine_without_counters_has_no_energy(command: CommandLine) -> None:
    if list(Path("/sys/class/powercap").glob("intel-rapl:*")):
        pytest.skip("this machine counts the CPU's energy")
    command.train("--repeats", "1", "--device", "cpu")
    (record,) = command.records()
    assert record.energy is None
