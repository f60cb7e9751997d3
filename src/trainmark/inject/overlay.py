"""Keeps what a confined script writes outside of its copy, and lets the script read it back.

A confined command runs in a copy of the user's folder, and the kernel refuses what it writes
elsewhere. A script may well save a checkpoint under an absolute path and load it later. In Python
processes, the functions that open, list and change files are replaced: what is written outside goes
to the folder *elsewhere*, and later reads of the same path see it there. What the script removes
outside is hidden from this process and from those that it forks, but stays.

Paths of libraries that open files by themselves are replaced by ``saving``.

Needs only the standard library of Python 3.8 or newer; it is loaded in the user's process.
"""

from __future__ import annotations

import errno
import math
import os
import stat
from _thread import get_ident
from collections.abc import Callable
from typing import Any

ORIGINAL = "TRAINMARK_ORIGINAL"
"""Environment variable: the user's folder."""
COPY = "TRAINMARK_COPY"
"""Environment variable: its copy, in which the command runs."""
ABOVE = "TRAINMARK_ABOVE"
"""Environment variable: a folder above the copy that stands for the one as far above the user's."""
ELSEWHERE = "TRAINMARK_ELSEWHERE"
"""Environment variable: the folder with what is written outside of the copy."""
WRITABLE = "TRAINMARK_WRITABLE"
"""Environment variable: the folders that are written to directly."""
COPIED_AT = "TRAINMARK_COPIED_AT"
"""Environment variable: when the folder was copied, in seconds since 1970."""
NOT_COPIED = ("trainmark-results", "__pycache__", ".git", ".venv")
"""Names of folders whose files the copy lacks."""
_NAMES_NOT_COPIED = frozenset(NOT_COPIED)
_SYSTEM = ("/dev/", "/proc/")
"""Folders with files of the system, which can be written but not replaced or removed."""
_SHARED_MEMORY = "/dev/shm/"
_LARGEST_COPY = 1 << 30
"""Most bytes of a file outside that is copied in order to be changed."""
_PIECE = 1 << 20
_MOST_PLAIN_FOLDERS = 10_000
"""Most folders without links that are remembered."""
_MOST_LINKS = 40
"""Most links that are followed in one path, as on Linux."""


class Overlay:
    """The folders that a confined script may write to, and where other paths lead.

    Args:
        environment: has the variables of this module.
    """

    def __init__(self, environment: Any) -> None:
        self._original = _folder(environment[ORIGINAL])
        self._copy = _folder(environment[COPY])
        self._above_copy = _folder(environment[ABOVE])
        self._above_original = self._original
        for _ in range(self._copy.count(os.sep) - self._above_copy.count(os.sep)):
            self._above_original = _folder(os.path.dirname(self._above_original[:-1]))
        self._elsewhere = real_path(environment[ELSEWHERE])
        writable = filter(None, environment[WRITABLE].split(os.pathsep))
        self._writable = (*map(_folder, writable), *_SYSTEM)
        self._copied_at = float(environment[COPIED_AT])
        self._removed: set[str] = set()
        self._is_used = False
        self._plain_folders: set[str] = set()

    # Where a path leads

    def reading(self, path: Any, *, follows: bool = True) -> Any:
        """Return the path to read instead of ``path``, which may be itself.

        A file that was removed leads to one that does not exist.

        Args:
            path: any path; a file descriptor is returned as it is.
            follows: follow a link at its end.
        """
        name = _name(path)
        if name is None or not self._may_differ(name):
            return path
        real = self._real(name, follows=follows)
        place = self._place(real)
        if place is None:
            return self._unless_itself(path, real, follows=follows)
        outside = self._outside(real)
        # A folder is seen in two places: in the user's, relative paths lead on to both.
        is_merged = _is_folder(place) and _is_folder(outside)
        if self._is_copied(place) or self._is_removed(outside):
            return _like(path, place)
        if _exists(place) and not is_merged:
            return _like(path, place)
        return self._unless_itself(path, outside, follows=follows)

    def writing(self, path: Any, *, keeps: bool = False) -> Any:
        """Return the path to write instead of ``path``, which may be itself.

        Args:
            path: any path; a file descriptor is returned as it is.
            keeps: the present content is kept, so it is copied first.

        Raises:
            PermissionError: a file is too large to be copied.
        """
        name = _name(path)
        if name is None:
            return path
        real = self._real(name)
        place = self._place(real)
        if place is None:
            return self._unless_itself(path, real)
        self._prepare(self._outside(real), place, keeps=keeps)
        return _like(path, place)

    def saving(self, path: Any) -> Any:
        """Return what :meth:`writing` does, for a library that may replace the file by another.

        A device is therefore never returned.
        """
        name = _name(path)
        if name is None:
            return path
        real = self._real(name)
        if not _is_of_system(real):
            return self.writing(path)
        self._prepare(real, self._elsewhere + real, keeps=False)
        return _like(path, self._elsewhere + real)

    def updating(self, path: Any) -> Any:
        """Return the path to change instead of ``path``, with the present content."""
        return self.writing(path, keeps=True)

    def changing(self, path: Any, *, follows: bool = False) -> str | None:
        """Return where a path lies that is made, removed, moved or changed; None if it is itself.

        Args:
            path: any path, or a file descriptor.
            follows: follow a link at its end.

        Raises:
            PermissionError: it is a file of the system.
        """
        name = _name(path)
        if name is None:
            return None
        self._plain_folders.clear()  # a folder may become a link
        real = self._real(name, follows=follows)
        if _is_of_system(real):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        place = self._place(real)
        if place is None and self._unless_itself(name, real, follows=follows) != name:
            return real
        return place

    # What is there

    def folders(self, path: Any) -> list[Any] | None:
        """Return the folders whose content is seen in ``path``; None if it is that folder alone."""
        name = _name(path)
        if name is None or not self._may_differ(name):
            return None
        real = self._real(name)
        place = self._place(real)
        if place is None:
            led = self._unless_itself(path, real)
            return None if led is path else [led]
        outside = self._outside(real)
        is_seen = _is_folder(outside) and not self._is_removed(outside)
        if not is_seen or self._is_copied(place):
            return [_like(path, place)]
        written = [_like(path, place)] if _is_folder(place) else []
        return [*written, _like(path, outside)]

    def shows(self, folder: Any, name: Any) -> bool:
        """Return whether an entry of a folder is seen, rather than removed."""
        real = os.path.join(self._real(os.fsdecode(folder)), os.fsdecode(name))
        place = self._place(real)
        return not self._is_removed(self._outside(real)) or place is None or _exists(place)

    def has_outside(self, path: Any) -> bool:
        """Return whether the user's own file of this path is seen, rather than what was written."""
        name = _name(path)
        assert name is not None
        real = self._real(name, follows=False)
        place = self._place(real)
        if place is None or self._is_copied(place):
            return False
        outside = self._outside(real)
        return _exists(outside) and not self._is_removed(outside)

    def may_copy(self, path: Any, most_bytes: int) -> bool:
        """Return whether the file to change instead of ``path`` exists or has few bytes."""
        name = _name(path)
        assert name is not None
        real = self._real(name)
        place = self._place(real)
        if place is None or _exists(place) or not _is_file(self._outside(real)):
            return True
        return _stat(self._outside(real)).st_size <= most_bytes

    def remove(self, path: Any) -> None:
        """Hide the user's own file or folder of this path."""
        name = _name(path)
        assert name is not None
        self._removed.add(self._outside(self._real(name, follows=False)))

    def copy_up(self, path: Any, place: str) -> None:
        """Copy the user's own file of this path to ``place``, if it is seen and not there yet."""
        if not _exists(place) and self.has_outside(path):
            name = _name(path)
            assert name is not None
            self._prepare(self._outside(self._real(name, follows=False)), place, keeps=True)

    def make_parents(self, path: Any, place: str) -> None:
        """Make the folder of ``place`` if that of ``path`` is seen."""
        name = _name(path)
        assert name is not None
        if _is_folder(self.reading(os.path.dirname(self._real(name, follows=False)))):
            make_folders(os.path.dirname(place))

    # Private

    def _may_differ(self, name: str) -> bool:
        """Whether a path may lead elsewhere, without asking for each of its folders."""
        if not self._is_used:
            self._is_used = bool(self._removed) or _exists(self._elsewhere)
        if self._is_used:
            return True
        absolute = _absolute(name)
        if ".." in name or "//" in name or "/." in name:
            absolute = os.path.normpath(absolute)
        absolute += os.sep
        if absolute.startswith(self._copy):
            return False
        return absolute.startswith((self._original, self._above_copy))

    def _real(self, name: str, *, follows: bool = True) -> str:
        """Return the real path of the file that the script sees at a path."""
        absolute = _absolute(name)
        if self._is_in_plain_folder(absolute) and not (follows and self._target(absolute)):
            return absolute
        return _resolved(name, self._target, follows=follows)

    def _is_in_plain_folder(self, path: str) -> bool:
        """Whether the folder of an absolute path has no links on its way.

        Most files that a script opens are in a few folders, and it takes long to ask for each
        folder on the way. So the answer is remembered until this process makes, moves or removes
        anything. What other processes do to folders in the meantime is not seen.
        """
        folder, last = os.path.split(path)
        if last in ("", ".", "..") or "//" in path:
            return False
        if folder in self._plain_folders:
            return True
        if real_path(folder, self._target) != folder:
            return False
        if len(self._plain_folders) >= _MOST_PLAIN_FOLDERS:
            self._plain_folders.clear()
        self._plain_folders.add(folder)
        return True

    def _unless_itself(self, path: Any, real: str, *, follows: bool = True) -> Any:
        """Return a real path, or ``path`` if it leads there without this overlay."""
        name = os.fsdecode(path)
        if name == real or (real.startswith(self._copy) and _absolute(name) == real):
            return path
        if _resolved(name, _target, follows=follows) == real:
            return path
        return _like(path, real)

    def _target(self, path: str) -> str | None:
        """Return where a link leads, which the script may have made, replaced or removed."""
        if path.startswith(self._copy):
            return _target(path)
        outside = self._outside(path)
        inside = outside[len(self._original) :] if outside.startswith(self._original) else None
        written = self._elsewhere + outside if inside is None else self._copy + inside
        try:
            target = _readlink(written)
        except OSError as error:
            if error.errno == errno.EINVAL or self._is_copied(written):
                return None  # it is no link any more
        except ValueError:
            return None
        else:
            return None if target == outside else target  # the copy has links to large files
        return None if self._is_removed(outside) else _target(path)

    def _place(self, real: str) -> str | None:
        """Return where what is written to a real path goes; None if it goes there."""
        inside = real + os.sep
        if inside.startswith(self._copy):
            return None
        outside = self._outside(real)
        if outside == real and inside.startswith(self._writable) and not self._is_older(real):
            return None
        if inside.startswith(self._original):
            copied = self._copy + real[len(self._original) :]
            is_large = _target(copied) == outside  # the copy has a link to the user's own
            if not is_large and self._is_folder_copied(copied):
                return copied
        return self._elsewhere + outside

    def _is_folder_copied(self, copied: str) -> bool:
        """Whether the folder of a path in the copy is in the copy, rather than linked."""
        folder = os.path.dirname(copied)
        is_plain = self._is_in_plain_folder(copied)
        return is_plain or (real_path(folder) + os.sep).startswith(self._copy)

    def _is_older(self, real: str) -> bool:
        """Whether a path in shared memory, or a folder around it, is older than the copy."""
        while real.startswith(_SHARED_MEMORY):
            if _changed_at(real) < self._copied_at:
                return True
            real = os.path.dirname(real)
        return False

    def _outside(self, real: str) -> str:
        """Return the user's path for one next to the copy, such as ``../data``; else the path."""
        inside = real + os.sep
        if inside.startswith(self._copy) or not inside.startswith(self._above_copy):
            return real
        return self._above_original + real[len(self._above_copy) :]

    def _is_copied(self, place: str) -> bool:
        """Whether the copy alone says what is at ``place``, since its folder was copied."""
        inside = place[len(self._copy) :].split(os.sep)
        return place.startswith(self._copy) and _NAMES_NOT_COPIED.isdisjoint(inside)

    def _is_removed(self, real: str) -> bool:
        """Whether a path, or a folder around it, was removed."""
        if not self._removed:
            return False
        while real not in self._removed:
            if real == os.sep:
                return False
            real = os.path.dirname(real)
        return True

    def _prepare(self, real: str, place: str, *, keeps: bool) -> None:
        """Make ``place`` ready to be written, as the file ``real`` of the user's is."""
        if _exists(place):
            return
        self.make_parents(real, place)
        if keeps and _is_file(real) and not self._is_removed(real):
            _copy(real, place)


def make_folders(folder: str) -> None:
    """Make a folder and those above it."""
    if not _is_folder(folder):
        make_folders(os.path.dirname(folder))
        try:
            _mkdir(folder)
        except FileExistsError:  # another process made it
            return


# The real functions, which are called after their names were replaced.
_mkdir = os.mkdir
_stat = os.stat
_lstat = os.lstat
_readlink = os.readlink
_open = os.open
_fchmod = os.fchmod
_link = os.link
_replace = os.replace
_unlink = os.unlink


def _folder(path: str) -> str:
    return os.path.join(real_path(path), "")


def _name(path: Any) -> str | None:
    """Return a path as text; None for a file descriptor, or what is no path."""
    if isinstance(path, int):
        return None
    try:
        return os.fsdecode(path)
    except TypeError:
        return None


def _like(path: Any, place: str) -> Any:
    """Return ``place`` as bytes if ``path`` is."""
    return os.fsencode(place) if isinstance(path, bytes) else place


def _is_of_system(real: str) -> bool:
    return real.startswith(_SYSTEM) and not real.startswith(_SHARED_MEMORY)


def _target(path: str) -> str | None:
    """Return where a link leads; None for anything else."""
    try:
        return _readlink(path)
    except (OSError, ValueError):
        return None


def _resolved(name: str, target_of: Callable[[str], str | None], *, follows: bool) -> str:
    """Return a real path, in which a link at the end is followed or not."""
    folder, last = os.path.split(name.rstrip(os.sep) or name)
    if follows or last in ("", ".", ".."):
        return real_path(name, target_of)
    return os.path.join(real_path(folder, target_of), last)


def real_path(name: str, target_of: Callable[[str], str | None] = _target) -> str:
    """Return an absolute path without links, as :func:`os.path.realpath` does.

    That one calls functions which are replaced.

    Args:
        name: any path.
        target_of: returns where a link leads, and None for anything else.
    """
    path = "" if os.path.isabs(name) else _current()
    rest = name.split(os.sep)[::-1]
    links = 0
    while rest:
        part = rest.pop()
        if part == "..":
            path = os.path.dirname(path)
        elif part not in ("", "."):
            path = os.path.join(path or os.sep, part)
            target = target_of(path) if links < _MOST_LINKS else None
            if target is not None:
                links += 1
                path = "" if os.path.isabs(target) else os.path.dirname(path)
                rest += target.split(os.sep)[::-1]
    return path or os.sep


def _absolute(name: str) -> str:
    """Return an absolute path, without looking at what is there."""
    if name.startswith(os.sep):
        return name
    return os.path.join(_current(), name[2:] if name.startswith("./") else name)


def _current() -> str:
    """Return the current folder; the root if it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return os.sep


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(_stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(_stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _changed_at(path: str) -> float:
    """Return when a file was last changed, in seconds since 1970; infinity if there is none."""
    try:
        return _lstat(path).st_ctime
    except (OSError, ValueError):
        return math.inf


def _exists(path: str) -> bool:
    try:
        _lstat(path)
    except (OSError, ValueError):
        return False
    return True


def _copy(path: str, place: str) -> None:
    """Copy a file; another thread or process never sees a part of it."""
    about = _stat(path)
    if about.st_size > _LARGEST_COPY:
        message = f"trainmark does not copy {about.st_size} bytes to let a script change them"
        raise PermissionError(errno.EACCES, message, path)
    name = f".trainmark-{os.getpid()}-{get_ident()}"
    part = os.path.join(os.path.dirname(place), name)
    source = _open(path, os.O_RDONLY)
    try:
        target = _open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            piece = os.read(source, _PIECE)
            while piece:
                piece = piece[os.write(target, piece) :] or os.read(source, _PIECE)
            _fchmod(target, stat.S_IMODE(about.st_mode))
        finally:
            os.close(target)
        _put_in_place(part, place)
    finally:
        os.close(source)


def _put_in_place(part: str, place: str) -> None:
    """Give a complete copy its name, unless another thread or process was first."""
    try:
        _link(part, place)
    except FileExistsError:
        _unlink(part)
    except OSError:  # the file system has no hard links
        _replace(part, place)
    else:
        _unlink(part)
