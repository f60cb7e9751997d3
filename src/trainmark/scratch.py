"""Every temporary folder of trainmark is made here.

A folder has a prefix by which the next command finds it, and a lock that the system releases when
its owner ends. So a folder of a killed process is removed later, and one in use never is.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from trainmark import locks, processes

VARIABLE = "TRAINMARK_SCRATCH"
"""Environment variable of a process that uses such a folder: its path."""
PREFIX = "trainmark-scratch-"
"""Prefix of the names of these folders."""
_YOUNG_SECONDS = 60.0
"""Younger folders are left alone: their owner may be about to lock them."""


def shared_top() -> Path:
    """Return the folder for temporary files that all users and programs of this machine share.

    It is ``/tmp`` whatever TMPDIR says, if it can be written: a path of a socket must be short.
    """
    if os.access("/tmp", os.W_OK | os.X_OK):
        return Path("/tmp")
    return Path(tempfile.gettempdir())


@functools.cache
def compile_cache() -> str:
    """Return the folder for the compiled code of all processes of this command.

    It is removed when the command ends.
    """
    kept = contextlib.ExitStack()
    atexit.register(kept.close)
    return kept.enter_context(scratch_folder())


@contextlib.contextmanager
def scratch_folder(top: Path | None = None) -> Iterator[str]:
    """Create a folder below ``top`` and remove it afterwards.

    Also removes folders of owners that were killed.

    Args:
        top: by default :func:`shared_top`.
    """
    if top is None:
        top = shared_top()
    _sweep(top)
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=top)
    lock = os.open(folder, os.O_RDONLY)
    try:
        locks.hold(lock)
        yield folder
    finally:
        os.close(lock)
        _remove(Path(folder))


def kept_folder() -> Path:
    """Create a folder for what the user must find later; it is never removed."""
    return Path(tempfile.mkdtemp(prefix="trainmark-kept-"))


def _sweep(top: Path) -> None:
    for folder in top.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # the folder is another user's, gone, or in use
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                about = os.fstat(lock)
                if about.st_uid == os.getuid() and time.time() - about.st_mtime > _YOUNG_SECONDS:
                    locks.take(lock)
                    processes.end_marked(f"{VARIABLE}={folder}")
                    _remove(folder)
            finally:
                os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder, in which a command may have made folders that can't be changed.

    ``TemporaryDirectory`` before Python 3.12 changes the modes of what links lead to, then.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for place, names, _ in os.walk(folder):
        for path in (Path(place), *(Path(place) / name for name in names)):
            with contextlib.suppress(OSError):
                if not path.is_symlink():
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
