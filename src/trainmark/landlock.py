"""Landlock: the kernel refuses a process to write outside of the folders that it names.

The rule needs no rights, can't be taken back, and holds for every process that is started later,
whatever its language. Linux 6.2 is the first with the version (3) that also refuses to truncate
files. Reading is not restricted.

Needs only the standard library. Source: https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable

FIRST_SUFFICIENT_VERSION = 3
"""The first version of Landlock that refuses to truncate files."""
OFF_VARIABLE = "TRAINMARK_LANDLOCK"
"""Environment variable: ``off`` does without Landlock, as kernels do that lack it."""

_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
"""Numbers of the system calls, which are the same on all architectures."""
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
"""Option of ``prctl``: programs that are started later gain no rights, such as by ``sudo``."""

_WRITE_FILE = 1 << 1
_REMOVE_DIRECTORY = 1 << 4
_REMOVE_FILE = 1 << 5
_MAKE_DIRECTORY = 1 << 7
_MAKE_REGULAR_FILE = 1 << 8
_MAKE_SOCKET = 1 << 9
_MAKE_FIFO = 1 << 10
_MAKE_LINK = 1 << 12
_MOVE_BETWEEN_FOLDERS = 1 << 13
_TRUNCATE = 1 << 14
_MAKE_DEVICE = 1 << 6 | 1 << 11

_CHANGE_CONTENT = _WRITE_FILE | _TRUNCATE
"""Rights to write to files that exist."""
_CHANGE_FILES = _CHANGE_CONTENT | _MAKE_REGULAR_FILE | _REMOVE_FILE
"""Rights to make, write and remove files, but no folders."""
_CHANGE_ALL = (
    _CHANGE_FILES
    | _MAKE_DIRECTORY
    | _REMOVE_DIRECTORY
    | _MAKE_SOCKET
    | _MAKE_FIFO
    | _MAKE_LINK
    | _MOVE_BETWEEN_FOLDERS
)
"""Rights to change a folder in every way but by making devices."""
_SHARED_MEMORY = "/dev/shm"
"""Where semaphores and memory shared between processes are made, as by the workers of a loader."""


def version() -> int:
    """Return the version of Landlock in this kernel; 0 without it, or if it is switched off."""
    if sys.platform != "linux" or os.environ.get(OFF_VARIABLE) == "off":
        return 0
    return max(_call(_CREATE_RULESET, None, 0, _VERSION_FLAG), 0)


def is_sufficient() -> bool:
    """Return whether this kernel can refuse every way to change the content of a file."""
    return version() >= FIRST_SUFFICIENT_VERSION


def write_only_below(folders: Iterable[str]) -> None:
    """Refuse this thread, and what it starts from now on, to write outside of ``folders``.

    Besides these, existing files below ``/dev`` and ``/proc`` can be written, and files in
    ``/dev/shm`` can be made and removed.

    Args:
        folders: those that exist are used.

    Raises:
        OSError: the kernel refused; nothing may be started then.
    """
    handled = struct.pack("=Q", _CHANGE_ALL | _MAKE_DEVICE)
    ruleset = _checked(_call(_CREATE_RULESET, handled, len(handled), 0))
    try:
        for place in ("/dev", "/proc"):
            _allow(ruleset, place, _CHANGE_CONTENT)
        _allow(ruleset, _SHARED_MEMORY, _CHANGE_FILES)
        for folder in folders:
            _allow(ruleset, folder, _CHANGE_ALL)
        _checked(_libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _checked(_call(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, folder: str, rights: int) -> None:
    """Add a rule for what is below ``folder``; without one if it does not exist."""
    try:
        place = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        rule = struct.pack("=Qi", rights, place)
        _checked(_call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    finally:
        os.close(place)


def _call(number: int, *arguments: bytes | int | None) -> int:
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    found: int = _libc().syscall(ctypes.c_long(number), *words)
    return found


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"Landlock: {os.strerror(error)}")
    return result
