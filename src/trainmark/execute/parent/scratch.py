"""Folders for the files of measured processes.

These are sockets, which need a short path, and compiled code.
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

from trainmark import processes
from trainmark.execute.protocol.wire import SCRATCH, SCRATCH_PREFIX

_YOUNG_SECONDS = 60.0
"""Younger folders are left alone: their owner may be about to lock them."""


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

    The owner holds a lock on its folder, which the system releases when the owner ends.
    """
    import fcntl

    if top is None:
        top = Path("/tmp") if os.access("/tmp", os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    _sweep(top)
    with tempfile.TemporaryDirectory(
        prefix=SCRATCH_PREFIX, dir=top, ignore_cleanup_errors=True
    ) as folder:
        lock = os.open(folder, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):  # a file system without locks is never swept
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
        finally:
            os.close(lock)


def _sweep(top: Path) -> None:
    import fcntl

    for folder in top.glob(f"{SCRATCH_PREFIX}*"):
        with contextlib.suppress(OSError):  # the folder is another user's, gone, or in use
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                about = os.fstat(lock)
                if about.st_uid == os.getuid() and time.time() - about.st_mtime > _YOUNG_SECONDS:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    processes.end_marked(f"{SCRATCH}={folder}")
                    shutil.rmtree(folder)
            finally:
                os.close(lock)
