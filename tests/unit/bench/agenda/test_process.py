"""Commands end in time, together with everything that they started."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import psutil
import pytest
import tomllib
from gpu import wheels
from gpu.session import Session

from tests.end_to_end.command import wait_until
from tests.unit.bench.conftest import BENCH

# Another test of the same worker may have imported JAX, which warns about the fork that a death
# signal needs.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork\\(\\) was called:RuntimeWarning")

SLEEPER = """
import subprocess
sleeper = subprocess.Popen(["sleep", "600"])
print(sleeper.pid, flush=True)
sleeper.wait()
"""


def test_a_command_that_takes_too_long_is_stopped(session: Session) -> None:
    ran = session.processes.run("sh", "-c", "echo begun; exec sleep 600", seconds=2)
    assert ran.printed == "begun\n"
    assert "was stopped after 2 s" in ran.problem


def test_an_error_is_quoted(session: Session) -> None:
    ran = session.processes.run(sys.executable, "-c", "raise SystemExit('no data')", seconds=60)
    assert ran.problem.endswith("ended with 1: no data")


def test_what_a_command_left_behind_is_ended(session: Session) -> None:
    ran = session.processes.run(sys.executable, "-c", SLEEPER, seconds=4)
    (left,) = ran.printed.split()
    wait_until(lambda: not runs(int(left)))


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_a_command_dies_with_a_killed_parent(tmp_path: Path) -> None:
    code = (
        "import sys, os; from pathlib import Path; sys.path[:0] = sys.argv[1:3]\n"
        "from gpu.process import Processes\n"
        "Processes(Path(sys.argv[3]), dict(os.environ)).run('sh', '-c', 'echo $$ > $OUT.new; mv "
        "$OUT.new $OUT; "
        "exec sleep 600', seconds=900, more={'OUT': sys.argv[4]})"
    )
    out = tmp_path / "pid"
    source = str(Path(BENCH).parent / "src")
    parent = subprocess.Popen([sys.executable, "-c", code, BENCH, source, tmp_path, out])
    while not out.exists():
        assert parent.poll() is None
    child = int(out.read_text())
    assert runs(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_until(lambda: not runs(child))


def test_missing_modules_are_named_with_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-S", BENCH / "gpu", "worth-it", tmp_path]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}
    )
    assert done.returncode == 1
    assert f"{sys.executable} lacks numpy, msgspec, click" in done.stderr
    assert "pip download --only-binary :all:" in done.stderr
    assert "nvidia-ml-py" in done.stderr


def test_every_dependency_is_looked_for() -> None:
    project = tomllib.loads((wheels.ROOT / "pyproject.toml").read_text())["project"]
    assert {re.split("[><=]", line)[0] for line in project["dependencies"]} - {"requests"} == {
        *wheels.NEEDED.values()
    }


def test_wheels_are_unpacked_onto_the_path(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "some-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("some/__init__.py", "")
    (unpacked,) = wheels.packages(tmp_path, tmp_path)
    assert Path(unpacked, "some", "__init__.py").is_file()
