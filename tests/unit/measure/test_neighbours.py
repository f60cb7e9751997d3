"""How much others use the CPU before anything is measured."""

from __future__ import annotations

import itertools
import subprocess
import sys

import psutil
import pytest

from trainmark.measure import neighbours
from trainmark.measure.cpu import Core
from trainmark.measure.neighbours import HostLoad, Neighbours, read_load


def test_busy_and_stolen_time_are_shares_of_the_usable_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings = iter(
        [
            (Core(10.0, 1.0, 100.0),) * 2 + (Core(0.0, 0.0, 0.0),),
            (Core(11.0, 1.5, 102.0),) * 2 + (Core(9.0, 0.0, 9.0),),
        ]
    )
    monkeypatch.setattr(neighbours, "read_cores", lambda: next(readings))
    monkeypatch.setattr(neighbours, "usable_core_numbers", lambda: (0, 1, 7))
    monkeypatch.setattr(neighbours, "read_pressure", lambda: None)
    assert read_load(0.0) == HostLoad(busy=0.5, stolen=0.25, waiting=None)


def test_waiting_is_a_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = itertools.count(7.0, 0.3)
    monkeypatch.setattr(neighbours, "read_pressure", lambda: next(waited))
    found = read_load(0.5).waiting
    assert found is not None and 0 < found <= 0.6


def test_a_system_that_reports_nothing_has_no_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "read_cores", lambda: None)
    assert read_load(0.0) == HostLoad()


@pytest.mark.parametrize(
    ("load", "is_high"),
    [(HostLoad(0.1, 0.05), False), (HostLoad(0.1, 0.15), True), (HostLoad(0.9), True)],
)
def test_a_fifth_of_the_cores_is_too_much(load: HostLoad, is_high: bool) -> None:
    assert load.is_high is is_high


RENAMED = """
import sys, time
while time.process_time() < 0.4: pass
print("used", flush=True)
for line in sys.stdin:
    with open("/proc/self/comm", "w") as file:
        file.write("renamed")
    print("renamed", flush=True)
"""


def test_earlier_cpu_time_of_a_renamed_process_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the process below is a neighbour
    monkeypatch.setattr(psutil.Process, "children", lambda *_, **__: [])
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", RENAMED], stdin=pipe, stdout=pipe, text=True, bufsize=1
    ) as process:
        assert process.stdin and process.stdout
        assert process.stdout.readline() == "used\n"
        neighbours = Neighbours()
        process.stdin.write("\n")
        assert process.stdout.readline() == "renamed\n"
        assert psutil.Process(process.pid).name() == "renamed"
        assert process.pid not in {each.pid for each in neighbours.busiest(1000) if each.cores > 1}
        process.stdin.close()
