"""Files in the cache appear whole or not at all, and one process at a time fills a folder of it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl


def keep(directory: Path, name: str, payload: bytes) -> None:
    """Writes ``directory/name``. A reader sees the old file or the new one, never a part of it."""
    descriptor, draft = tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(payload)
        Path(draft).chmod(0o644)  # mkstemp gives it to its owner alone, but caches are shared
        Path(draft).replace(directory / name)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Creates ``directory`` and waits until no other process is in here with it.

    The lock ends with the process that holds it. Where the file system has no locks, or on Windows, nobody waits: since
    ``keep`` is atomic and content is checked, two processes then only do the same work twice.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        if sys.platform != "win32":
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
