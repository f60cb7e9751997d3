"""Regular files: check them, read them up to a limit, and write them atomically.

A path from the user can be anything: a pipe without a writer, an endless device, a file of many gigabytes. None of them
may block trainmark or fill its memory.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path

_BLOCK = 1 << 20


def is_file(path: Path) -> bool:
    """Whether there is a regular file. Unlike ``Path.is_file`` this never raises, even without permission."""
    return stat.S_ISREG(_mode(path))


def is_folder(path: Path) -> bool:
    """Whether there is a folder. Unlike ``Path.is_dir`` this never raises."""
    return stat.S_ISDIR(_mode(path))


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):  # ValueError: an invalid name
        return 0


def found_at(path: Path) -> str:
    """Describe what is at ``path``, or why that can't be seen, for an error."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return "nothing"
    except OSError as error:
        return error.strerror or str(error)
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a file" if stat.S_ISREG(mode) else "neither a file nor a folder"


def read(path: Path, most: int) -> bytes:
    """Read the file at ``path``, of at most ``most`` bytes.

    Raises:
        OSError: it can't be read, is not a regular file, or is larger.
    """
    # Opening a pipe without a writer would block.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_ISDIR(status.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        content = bytearray()
        while status.st_size <= most and len(content) <= most and (block := file.read(_BLOCK)):
            content += block
    if status.st_size > most or len(content) > most:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes", str(path))
    return bytes(content)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees it whole or not at all, even after a crash of the machine."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
