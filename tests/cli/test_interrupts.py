"""Ctrl-C and SIGTERM, heard wherever a command is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HEARS = """
import os, signal, sys, time
from trainmark.cli import interrupts
interrupts.hear()
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


def play(folder: Path, ends: str, seconds: float, how: str, **options: object) -> str:
    (folder / "drops.py").write_text(DROPS.replace("SECONDS", str(seconds)))
    (folder / "main.py").write_text(HEARS + ends)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    return subprocess.run(
        [sys.executable, str(folder / "main.py"), how], env=environment, capture_output=True, text=True, **options
    ).stdout  # type: ignore[call-overload]


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM"])
def test_a_module_that_drops_what_is_raised_in_it_does_not_drop_an_interrupt(tmp_path: Path, how: str) -> None:
    assert play(tmp_path, ENDS, 0.2, how).split() == ["interrupted"]


def test_an_import_that_hangs_is_interrupted(tmp_path: Path) -> None:
    begun = time.monotonic()
    assert play(tmp_path, ENDS.replace("sleep(10)", "sleep(0)"), 60, "SIGINT").split()[0] == "dropped"
    assert time.monotonic() - begun < 30


def test_outside_an_import_it_comes_at_once(tmp_path: Path) -> None:
    at_once = """
try:
    os.kill(os.getpid(), which)
    print("went on")
except KeyboardInterrupt:
    print("interrupted")
"""
    assert play(tmp_path, at_once, 0, "SIGTERM").split() == ["interrupted"]


def test_after_an_import_it_waits_for_what_must_be_done_whole(tmp_path: Path) -> None:
    held = """
from trainmark.execute.undisturbed import undisturbed
interrupts._LOOK_AGAIN = 0.2
try:
    import drops
    with undisturbed():
        time.sleep(0.5)
        print("whole")
    print("went on")
except KeyboardInterrupt:
    print("interrupted")
"""
    assert play(tmp_path, held, 0, "SIGINT").split() == ["whole", "interrupted"]


def test_what_is_ignored_stays_ignored(tmp_path: Path) -> None:
    ignored = "print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    assert (
        play(tmp_path, ignored, 0, "SIGINT", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        == "True\n"
    )
