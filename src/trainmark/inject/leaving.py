"""How a process ends in the middle of its training."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import stat
import sys
from typing import Any

from .hooks import load_hook

_FILES = io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom


def leave(hook: Any) -> None:
    """Leave without cleaning up, except for what was written and for child processes.

    Args:
        hook: the hook that reports; None if this process has none.
    """
    with contextlib.suppress(Exception):  # a device may have failed
        # Other ranks may wait for what this one has queued.
        (hook or load_hook())._synchronize()
    for stream in (sys.stdout, sys.stderr, *_open_files()):
        with contextlib.suppress(Exception):  # it may be closed, or replaced by the script
            stream.flush()
    multiprocessing: Any = sys.modules.get("multiprocessing")
    if multiprocessing is not None:
        with contextlib.suppress(ValueError):  # a thread trains
            # PyTorch would otherwise raise an error about its loader.
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        children = multiprocessing.active_children()
        for child in children:
            child.kill()
        for child in children:
            child.join(1)
    os._exit(0)


def _open_files() -> list[Any]:
    """Return the regular files that are open; not pipes, whose reader may have stopped."""
    found = []
    for each in gc.get_objects():
        if type(each) in _FILES:
            with contextlib.suppress(Exception):  # the file is closed
                if stat.S_ISREG(os.fstat(each.fileno()).st_mode):
                    found.append(each)
    return found
