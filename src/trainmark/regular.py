"""Regular files: check them, read them up to a limit, and write them atomically.

A path from the user can be anything: a pipe without a writer, an endless device, a file of many
gigabytes. Reading one of them must not block trainmark or fill its memory, and writing to one must
not replace a device with a file.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path

from trainmark import locks

_BLOCK = 1 << 20


def is_file(path: Path) -> bool:
    """Whether there is a regular file.

    Unlike ``Path.is_file`` this never raises, even without permission.
    """
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
    return read_with_status(path, most)[0]


def read_with_status(path: Path, most: int) -> tuple[bytes, os.stat_result]:
    """Read as :func:`read` does; also return the status of the file that was read.

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
        while status.st_size <= most and len(content) <= most:
            block = file.read(_BLOCK)
            if not block:
                break
            content += block
    if status.st_size > most or len(content) > most:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes", str(path))
    return bytes(content), status


def can_write(path: Path) -> bool:
    """Whether :func:`write` can probably write to ``path``.

    This is a check before a long computation.
    """
    if os.access(path, os.W_OK):
        return not is_folder(path)
    folder = Path(os.path.realpath(path)).parent
    return is_folder(folder) and os.access(folder, os.W_OK)


def write(path: Path, content: bytes) -> None:
    """Write ``content`` to a path that the user chose.

    A device, a pipe or a link is not replaced.

    A symbolic link is followed. A regular file is replaced atomically and keeps its mode and owner.
    Everything else, such as a device or a pipe, is opened and written to; a named pipe waits for
    its reader.

    Raises:
        OSError: it can't be written.
    """
    descriptor = _own_descriptor(path)
    if descriptor is not None:
        # An atomic replacement would lose what the shell wrote to this file before, and what it
        # writes afterwards.
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        return
    target = Path(os.path.realpath(path))
    if _exists(path) and not (is_file(target) and path.samefile(target)):
        _write_in_place(path, content)
        return
    try:
        write_atomically(target, content)
    except OSError as error:
        # A single file that is mounted into a container can't be replaced, and its folder is often
        # read-only.
        if error.errno not in _NOT_REPLACEABLE or not is_file(target):
            raise
        _write_in_place(target, content)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a regular file so that a reader sees it whole or not at all.

    This holds even after a crash of the machine.

    An existing file keeps its mode and owner. Use :func:`write` for a path that a user chose.
    """
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            locks.hold(handle)  # or another command would take it for the remains of a killed one
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _take_over(path, temporary)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def require_writable(folder: Path) -> None:
    """Write a temporary file into ``folder``, which a full or read-only disk refuses.

    Raises:
        OSError: it can't be written.
    """
    handle, temporary = tempfile.mkstemp(prefix=".probe.json.", suffix=".part", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        Path(temporary).unlink(missing_ok=True)


_PROBE_BYTES = 4096
"""Size in bytes of a file that is written as a test: a block of most file systems."""
_NOT_REPLACEABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY)
"""Errors of an attempt to replace a file that may still be writable in place."""
_MOST_LINKS = 40
"""Maximum number of symbolic links in a row, as in the Linux kernel."""


def _take_over(path: Path, temporary: str) -> None:
    """Give the file that will replace ``path`` the owner and the mode of ``path``."""
    if not is_file(path):
        Path(temporary).chmod(0o644)
        return
    before = path.stat()
    own = Path(temporary).stat()
    if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
        os.chown(temporary, before.st_uid, before.st_gid)
    Path(temporary).chmod(stat.S_IMODE(before.st_mode))  # after chown, which clears some bits


def _exists(path: Path) -> bool:
    """Whether there is anything at ``path``.

    Unlike ``Path.exists`` this raises if links form a loop.
    """
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def _write_in_place(path: Path, content: bytes) -> None:
    # Without O_CREAT: if the path has just vanished, no regular file must appear in its place, such
    # as in /dev.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_TRUNC), "wb") as file:
        file.write(content)


def _own_descriptor(path: Path) -> int | None:
    """Return the file descriptor of this process that ``path`` names.

    It is 1 for ``/dev/stdout``.
    """
    descriptors = (os.path.realpath("/dev/fd"), f"/proc/{os.getpid()}/fd")
    for _ in range(_MOST_LINKS):
        folder = os.path.realpath(path.parent)
        if folder in descriptors and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = Path(folder, path.readlink())
    return None
