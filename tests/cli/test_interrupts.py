"""Signals that end a command are obeyed wherever it is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

HEARS = """
import os, signal, sys, time
from trainmark.cli import interrupts
interrupts.install()
which = getattr(signal, sys.argv[1])
"""
DROPS = """
import os, time
from __main__ import which
try:
    os.kill(os.getpid(), which)
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        pass
except KeyboardInterrupt:
    print("dropped", flush=True)
"""
ENDS = """
try:
    import drops
    time.sleep(10)
    print("went on")
except KeyboardInterrupt:
    print("interrupted")
"""


def play(
    folder: Path, ends: str, seconds: float, how: str, before: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    (folder / "drops.py").write_text(DROPS.replace("SECONDS", str(seconds)))
    (folder / "main.py").write_text(HEARS + ends)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    words = [*before, sys.executable, str(folder / "main.py"), how]
    return subprocess.run(words, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_a_module_that_drops_what_is_raised_in_it_does_not_drop_an_interrupt(
    tmp_path: Path, how: str
) -> None:
    assert play(tmp_path, ENDS, 0.2, how).stdout.split() == ["interrupted"]


def test_an_import_that_hangs_is_interrupted(tmp_path: Path) -> None:
    begun = time.monotonic()
    assert (
        play(tmp_path, ENDS.replace("sleep(10)", "sleep(0)"), 60, "SIGINT").stdout.split()[0]
        == "dropped"
    )
    assert time.monotonic() - begun < 55


def test_outside_an_import_it_comes_at_once(tmp_path: Path) -> None:
    at_once = """
try:
    os.kill(os.getpid(), which)
    print("went on")
except KeyboardInterrupt:
    print("interrupted")
"""
    assert play(tmp_path, at_once, 0, "SIGTERM").stdout.split() == ["interrupted"]


def test_after_an_import_it_waits_for_what_must_be_done_whole(tmp_path: Path) -> None:
    held = """
from trainmark.execute.parent.undisturbed import undisturbed
interrupts._LOOK_AGAIN = 1.0
try:
    import drops
    with undisturbed():
        while signal.getitimer(signal.ITIMER_REAL)[0]:
            time.sleep(0.01)
        print("whole")
    print("went on")
except KeyboardInterrupt:
    print("interrupted")
"""
    assert play(tmp_path, held, 0, "SIGINT").stdout.split() == ["whole", "interrupted"]


def test_what_waits_for_the_last_import_does_not_come_after_the_end(tmp_path: Path) -> None:
    """As SIGALRM, which no one receives any more by then, it would end the interpreter with its
    own code."""
    ends = """
from trainmark.cli import main
class Last:
    def __del__(self, sleep=time.sleep):
        sleep(2.5)
last = Last()
interrupts._LOOK_AGAIN = 2.0
def run(*_):
    import drops
    return 0
main.run = run
main.main()
"""
    ended = play(tmp_path, ends, 0, "SIGINT")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_several_at_once_are_one(tmp_path: Path) -> None:
    twice = """
from types import SimpleNamespace
now = [0.0]
interrupts.time = SimpleNamespace(monotonic=lambda: now[0])
try:
    os.kill(os.getpid(), which)
except KeyboardInterrupt:
    os.kill(os.getpid(), signal.SIGTERM)
    print("cleaned up", flush=True)
try:
    os.kill(os.getpid(), signal.SIGTERM)
    now[0] = 1.1
    os.kill(os.getpid(), signal.SIGTERM)
    print("went on")
except KeyboardInterrupt:
    print("interrupted again")
"""
    assert play(tmp_path, twice, 0, "SIGINT").stdout.splitlines() == [
        "cleaned up",
        "interrupted again",
    ]


def test_after_the_end_no_process_is_interrupted(tmp_path: Path) -> None:
    late = """
import atexit
from trainmark.cli import main
main.run = lambda *_: 1
atexit.register(os.kill, os.getpid(), which)
main.main()
"""
    ended = play(tmp_path, late, 0, "SIGINT")
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.parametrize("how", ["SIGINT", "SIGHUP", "SIGQUIT"])
def test_what_is_ignored_stays_ignored(tmp_path: Path, how: str) -> None:
    ignored = "print(signal.getsignal(which) is signal.SIG_IGN)"
    deaf = ["sh", "-c", f"""trap '' {how.removeprefix("SIG")}; exec "$@" """, "sh"]
    assert play(tmp_path, ignored, 0, how, deaf).stdout == "True\n"
