"""What a regular file holds, and no more of it than can be right.

A path that a person names may be anything: a pipe that nobody writes to, a device without an end, a file of many
gigabytes. None of them may keep trainmark waiting, or fill its memory.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_BLOCK = 1 << 20


def read(path: Path, most: int) -> bytes:
    """The bytes of the file at ``path``, of which there may be ``most``.

    Raises:
        OSError: it can't be read, is no regular file, or is larger.
    """
    # A pipe without a writer would keep us waiting to open it.
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
