"""The dataset cache, filled by one process at a time, and the folder that the environment names."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Create ``directory`` and wait until no other process uses it.

    The lock ends with the process that holds it. On a file system without locks there is no
    waiting: since files are written atomically and checked, two processes then only do the same
    work twice.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cache_dir() -> Path:
    """Return the folder of trainmark's cached datasets and measured peaks."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("trainmark"))


def environment_dir() -> Path | None:
    """Return the folder of datasets that TRAINMARK_DATA names; None if unset."""
    folder = os.environ.get("TRAINMARK_DATA")
    return Path(folder) if folder else None
