"""No process of a measured command outlives trainmark, whatever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.end_to_end.command import alive, wait_until

# A command whose processes try to escape: in separate sessions, and by ignoring signals.
ESCAPING = (
    "setsid sleep 600 & "
    "(trap '' TERM INT HUP; sleep 600) & "
    "setsid sh -c 'sleep 600 & sleep 600' & "
    "touch started; sleep 600"
)


@pytest.fixture
def measuring(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Trainmark while it measures such a command."""
    words = ["measure", "--repeats", "1", "--quiet", "--", "sh", "-c", ESCAPING]
    process = subprocess.Popen([sys.executable, "-m", "trainmark", *words], cwd=tmp_path)
    wait_until(lambda: (tmp_path / "started").exists())
    yield process
    process.kill()
    process.wait()


def of_command(
    process: subprocess.Popen[bytes],
) -> tuple[psutil.Process, psutil.Process, list[psutil.Process]]:
    """Return the worker, the supervisor and the processes of the command."""
    (worker,) = psutil.Process(process.pid).children()
    (supervisor,) = worker.children()

    def all_of_them() -> list[psutil.Process] | None:
        found = supervisor.children(recursive=True)
        return found if sum("sleep" in each.name() for each in found) >= 5 else None

    return worker, supervisor, wait_until(all_of_them)


@pytest.mark.parametrize(
    "killed", ["trainmark", "worker", "supervisor", "both", "worker and supervisor"]
)
def test_no_process_outlives_what_is_killed(
    measuring: subprocess.Popen[bytes], killed: str
) -> None:
    worker, supervisor, command = of_command(measuring)
    which = {
        "trainmark": [measuring.pid],
        "worker": [worker.pid],
        "supervisor": [supervisor.pid],
        "both": [measuring.pid, worker.pid],
        "worker and supervisor": [worker.pid, supervisor.pid],
    }
    for pid in which[killed]:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive([supervisor, *command]), seconds=20.0)


def test_the_supervisor_does_not_show_the_name_of_trainmark(
    measuring: subprocess.Popen[bytes],
) -> None:
    _, supervisor, _ = of_command(measuring)
    assert "trainmark" not in " ".join(supervisor.cmdline())
    assert os.getsid(supervisor.pid) == supervisor.pid


def test_a_daemon_without_its_environment_ends_with_the_supervisor(tmp_path: Path) -> None:
    words = ["sh", "-c", "env -i setsid sleep 600 & touch started; sleep 600"]
    arguments = ["measure", "--repeats", "1", "--quiet", "--", *words]
    process = subprocess.Popen([sys.executable, "-m", "trainmark", *arguments], cwd=tmp_path)
    wait_until(lambda: (tmp_path / "started").exists())
    (worker,) = psutil.Process(process.pid).children()
    every = worker.children(recursive=True)
    process.kill()
    worker.kill()
    process.wait()
    wait_until(lambda: not alive(every), seconds=20.0)
