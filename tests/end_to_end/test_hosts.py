"""Training on two machines, which are network namespaces here; one of them is cut off in the
middle."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine, command_of, measured, wait_until
from tests.end_to_end.hosts import Host, NoHosts, two_hosts
from trainmark.record.caveats import Caveat
from trainmark.record.store import load, safe_name
from trainmark.study.rounds import BLOCKS

PORT = 29_417


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    try:
        with two_hosts() as found:
            yield found
    except NoHosts as none:
        pytest.skip(str(none))


class Scale:
    """``trainmark scale`` on both machines: the same command, except for the given words."""

    def __init__(self, command: CommandLine, hosts: tuple[Host, Host]) -> None:
        self.command = command
        self.hosts = hosts
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, number: int, *arguments: str) -> subprocess.Popen[str]:
        host = self.hosts[number]
        words = [
            "scale",
            "mnist-mlp128",
            "--backend",
            "torch",
            "--dataset",
            "synthetic-digits",
            "--data-parallel",
            "2",
            "--repeats",
            "1",
            "--threads",
            "1",
            "--json",
            "--nnodes",
            "2",
            "--rdzv-endpoint",
            f"{self.hosts[0].address}:{PORT}",
            "--out",
            str(self.out(number)),
            *arguments,
        ]
        process = self.command.start(*words, before=host.prefix)
        self.processes.append(process)
        return process

    def out(self, number: int) -> Path:
        return self.command.out / str(number)

    def records(self, number: int) -> list:
        return load([self.out(number) / "scale" / safe_name(platform.node())])


@pytest.fixture
def scale(command: CommandLine, hosts: tuple[Host, Host]) -> Iterator[Scale]:
    started = Scale(command, hosts)
    yield started
    for process in started.processes:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_two_machines_compute_what_one_does(scale: Scale) -> None:
    both = [scale.start(number, "--precision", "fp64", "--steps", "100") for number in (0, 1)]
    (first, words), (_, others) = (process.communicate(timeout=200) for process in both)
    assert [process.returncode for process in both] == [0, 0], (words, others)
    two = json.loads(first)["layouts"][1]
    assert two["ranks"] == 2 and two["agreement"]["passed"]
    assert two["agreement"]["largest_difference"] < 1e-9
    ranks = [
        [record.group.rank for record in scale.records(number) if record.group.world == 2]
        for number in (0, 1)
    ]
    # Once for the losses, then timed, with and without its sum. Only the whole is reported here.
    assert sorted(ranks[0], key=str) == [0, 0, 0, None, None, None]
    assert ranks[1] == [1, 1, 1]
    whole = [record for record in scale.records(0) if record.group.rank is None and record.round]
    assert len(whole) == 3 and all(len(record.slices) >= 2 * BLOCKS for record in whole)
    assert all(Caveat.ONE_AFTER_THE_OTHER in record.caveats for record in whole)
    (spread,) = {record.group.spread.host for record in scale.records(1) if record.group.rank == 1}
    assert spread.endswith(scale.hosts[1].address)


def ranks_of(processes: list[subprocess.Popen[str]]) -> int:
    return sum(
        "--rank" in command_of(rank)
        for process in processes
        for rank in measured(process.pid, deep=True)
    )


@pytest.mark.slow
def test_a_machine_that_is_cut_off_ends_the_run_on_both(scale: Scale) -> None:
    # nothing comes before it but one run on each machine alone, which is many times faster
    both = [scale.start(number, "--steps", "9000") for number in (0, 1)]
    wait_until(lambda: ranks_of(both) == 2, 100)
    time.sleep(12)
    assert [process.poll() for process in both] == [None, None]
    scale.hosts[1].cut_off()
    cut = time.monotonic()
    for process in both:
        process.communicate(timeout=90)
    assert time.monotonic() - cut < 90
    assert [process.returncode for process in both] == [1, 1]
    for number in (0, 1):
        failed = [record for record in scale.records(number) if record.outcome.status != "ok"]
        assert failed
        assert all(record.outcome.reason for record in failed)


@pytest.mark.slow
def test_machines_that_are_set_up_differently_say_how(scale: Scale) -> None:
    both = [scale.start(0, "--steps", "12"), scale.start(1, "--steps", "12", "--seed", "7")]
    errors = [process.communicate(timeout=120)[1] for process in both]
    assert [process.returncode for process in both] == [1, 1]
    for said in errors:
        assert "the ranks differ in their seed: expected 1 as on" in said
        assert f"at {scale.hosts[1].address} (rank" in said


@pytest.mark.slow
def test_a_machine_that_waits_in_vain_says_for_whom(scale: Scale) -> None:
    process = scale.start(0, "--weak", "--steps", "12", "--rdzv-timeout", "3")
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert f"expected 2 machines at {scale.hosts[0].address}:{PORT} within 3 s" in said


@pytest.mark.slow
def test_an_endpoint_without_a_server(scale: Scale) -> None:
    process = scale.start(1, "--weak", "--steps", "12", "--rdzv-timeout", "3")
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "the machines of this training did not connect" in said
    assert "no answer from the endpoint" in said
