"""Clean up after a local Ray when its sweep has ended: leftover processes and its folder.

It is run as a script, with the folder as its argument, and waits until its standard input is
closed, which happens when the sweep ends, even by SIGKILL. Ray's servers end with the process that
started them, but two of its agents would run for more than a minute longer. Their open log files
identify them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import psutil

_TRIES = 40
"""Maximum number of looks for processes; new ones may have started meanwhile."""
_PAUSE_SECONDS = 0.05
"""Seconds between two looks."""


def end_and_remove(folder: Path, spared: int) -> None:
    """Kill processes that have a file below ``folder`` open, and remove the folder.

    Args:
        folder: Ray's folder.
        spared: process that is not killed; neither is this one.
    """
    for _ in range(_TRIES):  # a process that is starting may open its files later
        others = (each for each in psutil.process_iter() if each.pid not in (spared, os.getpid()))
        found = [each for each in others if _uses(each, folder)]
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess):  # it may have ended meanwhile
                process.kill()
        if not found:
            break
        time.sleep(_PAUSE_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)


def _uses(process: psutil.Process, folder: Path) -> bool:
    try:
        return any(Path(file.path).is_relative_to(folder) for file in process.open_files())
    except (psutil.Error, OSError):  # it has ended, or belongs to another user
        return False


if __name__ == "__main__":
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(sent, signal.SIG_IGN)  # it must outlive the others
    sweep = os.getppid()  # it also has log files open, and may still be working
    sys.stdin.buffer.read()
    end_and_remove(Path(sys.argv[1]), sweep)
