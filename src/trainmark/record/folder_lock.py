"""The lock of a results folder, which lies in the machine's folder for temporary files.

So it outlives the results folder, whose owner may remove it meanwhile; it needs no locks of a
network file system; and it leaves nothing among the records. All users share it: two runs disturb
each other's clock, whoever starts them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from trainmark import locks
from trainmark.errors import OutputError
from trainmark.scratch import shared_top

PREFIX = "trainmark-lock-"
"""Prefix of the names of lock files."""
_DIGITS = 24
"""Number of digits of a hash in such a name."""
_ALL_USERS = 0o666
"""Mode of a lock file: the next user writes another process id into it."""
_TRIES = 100
"""Maximum number of attempts to lock a file that others remove meanwhile."""
_LONGEST_ID = 20
"""Maximum length of a process id, in bytes."""


def path_of(folder: Path) -> Path:
    """Return the lock file of ``folder``, by its real path."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()
    return shared_top() / f"{PREFIX}{name[:_DIGITS]}"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock ``folder``, which exists, for a ``with`` block.

    The folder itself is locked, too, where its file system can do that: another container may see
    it at another path, and has its own folder for temporary files.

    Raises:
        OutputError: another process has locked it, or its lock file can't be used.
    """
    path = path_of(folder)
    for left in path.parent.glob(f"{PREFIX}{'?' * _DIGITS}"):
        locks.remove_abandoned(left)
    with contextlib.ExitStack() as stack:
        try:
            lock = _taken(path)
            stack.callback(_release, path, lock)
        except BlockingIOError:
            raise _in_use(folder, _holder(path)) from None
        except OSError as error:
            raise OutputError(
                f"{folder} can't be locked: {path} can't be used",
                expected="a regular file on a file system with locks, which all users may write",
                found=error.strerror or str(error),
                fix="Remove it if no trainmark is running.",
            ) from error
        with contextlib.suppress(OSError):  # a full disk: the other command then names no process
            os.truncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, descriptor)
        try:
            locks.take(descriptor)
        except BlockingIOError:
            raise _in_use(folder, "") from None
        except OSError:
            pass  # network file systems don't lock folders
        yield


def _in_use(folder: Path, process: str) -> OutputError:
    return OutputError(
        f"another trainmark is running into {folder}",
        found=f"process {process or 'unknown'}",
        fix="Wait for it: two runs at once disturb each other's clock. Or give another folder with "
        "--out.",
    )


def _taken(path: Path) -> int:
    """Open the lock file, and lock it.

    Raises:
        BlockingIOError: another process holds it.
        OSError: it can't be used.
    """
    for _ in range(_TRIES):
        lock = _opened(path)
        try:
            locks.take(lock)
            if os.path.samestat(os.fstat(lock), path.stat(follow_symlinks=False)):
                return lock
        except FileNotFoundError:
            pass  # its last holder has removed it since it was opened
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
    raise OSError("other processes keep replacing it")


def _opened(path: Path) -> int:
    """Open the lock file of any user, or create it.

    Raises:
        OSError: it can't be opened, or is not a separate file, since another user may have put
            a link there.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        lock = os.open(path, flags)
    except FileNotFoundError:
        # The system refuses O_CREAT for a file of another user in a shared folder.
        try:
            lock = os.open(path, flags | os.O_CREAT | os.O_EXCL, _ALL_USERS)
        except FileExistsError:
            return _opened(path)
        os.fchmod(lock, _ALL_USERS)
    status = os.fstat(lock)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(lock)
        raise OSError("not a separate regular file")
    return lock


def _holder(path: Path) -> str:
    """Return the id of the process that holds the lock; empty if it is unknown."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        written = os.read(descriptor, _LONGEST_ID).decode(errors="replace").strip()
    finally:
        os.close(descriptor)
    return written if written.isdecimal() else ""


def _release(path: Path, lock: int) -> None:
    """Remove the lock file while it is held, so that no one waits for a file without a name."""
    with contextlib.suppress(OSError):  # it is another user's, which only that user can remove
        path.unlink()
    os.close(lock)
