"""Locks of open files and folders, which the system releases when their process ends.

They tell what a running process uses from what a killed one has left. Some network file systems
have no locks: nothing is removed from those.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def hold(descriptor: int) -> None:
    """Lock an open file or folder until it is closed; ignored where there are no locks."""
    import fcntl

    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def take(descriptor: int) -> None:
    """Lock an open file or folder until it is closed, without waiting.

    Raises:
        BlockingIOError: another process holds it.
        OSError: the file system has no locks.
    """
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def remove_abandoned(file: Path) -> None:
    """Remove a file that no process holds; one that can't be locked or removed stays."""
    with contextlib.suppress(OSError):  # it is gone, in use, or another user's
        descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            take(descriptor)
            file.unlink()  # while it is held, so that no other process takes it meanwhile
        finally:
            os.close(descriptor)
