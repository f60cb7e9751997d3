"""Ends what a Ray of ours leaves behind, and removes its folder, once the sweep that started it is gone.

Run as a file, with the folder as its argument. It waits for the end of its standard input, which comes with the end of
the sweep, also when that is killed. Ray's own servers end with whoever started them; two of its agents would go on for
a minute and more, asking a server that is no more. They are known by the log files that they keep open.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_TRIES, _PAUSE_SECONDS = 40, 0.05


def clear(folder: Path, spared: int) -> None:
    """End every process with an open file below ``folder``, all but ``spared``, and remove it."""
    for _ in range(_TRIES):  # one that was just starting may open its files after a first look
        found = [process for process in users(folder) if process != spared]
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:  # it is gone, or somebody else's
                continue
        if not found:
            break
        time.sleep(_PAUSE_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)


def users(folder: Path) -> Iterator[int]:
    """Processes with an open file below ``folder``; none where the system has no /proc."""
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) != os.getpid() and any(_is_below(target, folder) for target in _open_files(process)):
            yield int(process.name)


def _open_files(process: Path) -> Iterator[str]:
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:  # it is gone, or somebody else's
        return
    for descriptor in descriptors:
        try:
            yield str(descriptor.readlink())
        except OSError:
            continue


def _is_below(target: str, folder: Path) -> bool:
    return target.startswith(f"{folder}{os.sep}")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it has work to do after everybody else has ended
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sweep = os.getppid()  # itself has log files open, and may have more to do
    sys.stdin.buffer.read()
    clear(Path(sys.argv[1]), sweep)
