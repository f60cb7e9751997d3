"""Ends what a local Ray leaves behind, and removes its folder, once the sweep that started it is gone.

Run as a script, with the folder as its argument. It waits for the end of its standard input, which comes with the end
of the sweep, even by SIGKILL. Ray's servers end with the process that started them, but two of its agents would run on
for more than a minute. Their open log files give them away.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path

import psutil

_TRIES, _PAUSE_SECONDS = 40, 0.05


def clear(folder: Path, spared: int) -> None:
    """Kill every process that has a file below ``folder`` open, except ``spared`` and this one; remove the folder."""
    for _ in range(_TRIES):  # a process that is just starting may open its files after the first look
        found = [
            each for each in psutil.process_iter() if each.pid not in (spared, os.getpid()) and _uses(each, folder)
        ]
        for process in found:
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its work starts when all others have ended
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sweep = os.getppid()  # has log files open, too, and may have more to do
    sys.stdin.buffer.read()
    clear(Path(sys.argv[1]), sweep)
