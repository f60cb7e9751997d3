from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainmark.measure.cpu import Frequency, ProcessTree, read_cores

BURN = "import time\nwhile time.process_time() < {seconds}: pass\n"
CHILD_AND_GRANDCHILD = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {BURN.format(seconds=0.3)!r}])
{BURN.format(seconds=0.2)}
child.wait()
print("worked", flush=True)
sys.stdin.read()
"""


def test_cpu_time_of_a_process_tree_is_what_the_system_reports() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD_AND_GRANDCHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    tree = ProcessTree(process.pid)
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdout.readline()
    read = tree.usage()
    process.stdin.close()
    _, _, billed = os.wait4(process.pid, 0)
    process.returncode = 0
    process.stdout.close()
    assert read is not None
    assert read.cpu_seconds == pytest.approx(billed.ru_utime + billed.ru_stime, abs=0.1)
    assert read.cpu_seconds > 0.45
    assert read.resident_bytes > 2**20


def test_running_descendants_count_as_they_work() -> None:
    code = (
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', "
        f"{BURN.format(seconds=60)!r}])"
    )
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        tree = ProcessTree(process.pid)
        deadline = time.monotonic() + 120
        while (read := tree.usage()) is not None and read.cpu_seconds < 0.5:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert read is not None
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def test_a_process_that_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    tree = ProcessTree(process.pid)
    assert tree.usage() is None
    assert tree.proportional_bytes(1.0) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux divides shared pages")
def test_the_map_of_memory_is_not_read_into_what_is_timed() -> None:
    now = iter([10.0, 10.0, 10.1, 1000.0, 1000.0, 1000.1]).__next__  # it takes 0.1 s
    tree = ProcessTree(os.getpid(), clock=now)
    assert tree.proportional_bytes(0.0) is None, "the next epoch follows at once"
    assert (tree.proportional_bytes(0.5) or 0) > 2**20, "what the first one takes is not known"
    assert tree.proportional_bytes(0.9) is None
    assert (tree.proportional_bytes(1.1) or 0) > 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux divides shared pages")
def test_the_map_of_memory_is_not_read_again_before_it_has_paid() -> None:
    # it takes 10 ms, so it is due again after 1 s
    now = iter([10.0, 10.01, 10.5, 11.02, 11.03]).__next__
    tree = ProcessTree(os.getpid(), clock=now)
    assert (tree.proportional_bytes(1.0) or 0) > 2**20
    assert tree.proportional_bytes(1.0) is None
    assert (tree.proportional_bytes(1.0) or 0) > 2**20


def test_every_core_is_read() -> None:
    cores = read_cores()
    assert cores is not None
    assert len(cores) == os.cpu_count()
    assert all(0 <= core.busy <= core.total for core in cores)


def test_the_frequency_is_a_mean_of_cores(tmp_path: Path) -> None:
    for core, kilohertz in enumerate(("2000000", "3000000", "offline")):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{core}/cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_cur_freq").write_text(kilohertz)
    assert Frequency(tmp_path).hertz() == 2.5e9


def test_an_unknown_frequency(tmp_path: Path) -> None:
    assert Frequency(tmp_path).hertz() is None
