"""Replaces Python's functions that open, list and change files by ones that use an overlay."""

from __future__ import annotations

import _io
import builtins
import errno
import functools
import io
import os
import stat
import sys
from collections.abc import Callable
from typing import Any

from .overlay import Overlay

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
"""Flags of :func:`os.open` with which a file may be written."""
_READ = ("stat", "access", "listxattr", "getxattr", "statvfs", "chdir")
"""Functions of ``os`` that read what is at their first argument."""
_READ_LINK = ("lstat", "readlink")
"""The same, without following a link."""
_MAKE = ("mkdir", "mknod", "mkfifo")
"""Functions of ``os`` that make their first argument."""
_REMOVE = ("remove", "unlink", "rmdir")
_ATTRIBUTES = ("chmod", "lchmod", "chown", "lchown", "utime", "setxattr", "removexattr", "chflags")
"""Functions of ``os`` that change a file's attributes."""

_set = setattr


def install(overlay: Overlay) -> None:
    """Send what this process writes outside of its copy to the overlay's folder, from now on."""
    _replace_opening(overlay)
    for name in _READ:
        _replace(name, functools.partial(_reads, overlay))
    for name in _READ_LINK:
        _replace(name, functools.partial(_reads, overlay, follows=False))
    for name in _MAKE:
        _replace(name, functools.partial(_makes, overlay))
    for name in _REMOVE:
        _replace(name, functools.partial(_removes, overlay))
    for name in _ATTRIBUTES:
        _replace(name, functools.partial(_changes_attributes, overlay))
    _replace("truncate", functools.partial(_updates, overlay))
    for name in ("rename", "replace"):
        _replace(name, functools.partial(_moves, overlay))
    _replace("link", functools.partial(_links, overlay))
    _replace("symlink", functools.partial(_links_symbolically, overlay))
    _replace("listdir", functools.partial(_list, overlay))
    _replace("scandir", functools.partial(_list_entries, overlay))


def _replace(name: str, by: Callable[..., Any]) -> None:
    """Replace a function of ``os`` by one that is given the real one first.

    Functions that change files are replaced in the module that defines them, too; the others are
    not, since Python's own import uses them there.
    """
    real = getattr(os, name, None)
    if real is None:
        return

    @functools.wraps(real)
    def replaced(*args: Any, **more: Any) -> Any:
        if more.get("dir_fd") is not None or more.get("src_dir_fd") or more.get("dst_dir_fd"):
            return real(*args, **more)  # the kernel decides
        return by(real, *args, **more)

    _set(os, name, replaced)
    if name not in (*_READ, *_READ_LINK, "listdir", "scandir"):
        _set(sys.modules[os.name], name, replaced)
    for functions in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        if real in functions:
            functions.add(replaced)


def _replace_opening(overlay: Overlay) -> None:
    real_open = builtins.open
    real_os_open = os.open

    @functools.wraps(real_open)
    def open_(file: Any, mode: str = "r", *args: Any, **more: Any) -> Any:
        if not isinstance(mode, str) or isinstance(file, int):
            return real_open(file, mode, *args, **more)
        if not set(mode) & set("wax+"):
            return real_open(overlay.reading(file), mode, *args, **more)
        if "x" in mode:
            _require_absent(file)
        place = overlay.writing(file, keeps=bool(set(mode) & set("ra")))
        return real_open(place, mode, *args, **more)

    @functools.wraps(real_os_open)
    def os_open(path: Any, flags: int, *args: Any, **more: Any) -> int:
        if more.get("dir_fd") is not None:
            return real_os_open(path, flags, *args, **more)
        if not flags & _WRITES:
            return real_os_open(overlay.reading(path), flags, *args, **more)
        if flags & os.O_CREAT and flags & os.O_EXCL:
            _require_absent(path)
        is_there = os.path.lexists(path)
        place = overlay.writing(path, keeps=not flags & os.O_TRUNC)
        if place is not path and is_there:
            flags |= os.O_CREAT
        return real_os_open(place, flags, *args, **more)

    for module in (builtins, io, _io):
        _set(module, "open", open_)
    _set(os, "open", os_open)
    os.supports_dir_fd.add(os_open)


def _reads(
    overlay: Overlay, real: Callable[..., Any], /, *args: Any, follows: bool = True, **more: Any
) -> Any:
    """Call a function with the path to which its first argument leads."""
    follows = follows and more.get("follow_symlinks", True)
    lead = functools.partial(overlay.reading, follows=follows)
    args, more = _with_first(lead, args, more)
    return real(*args, **more)


def _updates(overlay: Overlay, real: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
    """Call a function that changes the content of its first argument."""
    args, more = _with_first(overlay.updating, args, more)
    return real(*args, **more)


def _makes(
    overlay: Overlay, real: Callable[..., Any], path: Any, /, *args: Any, **more: Any
) -> Any:
    place = overlay.changing(path)
    if place is None:
        return real(path, *args, **more)
    _require_absent(path)
    overlay.make_parents(path, place)
    return real(place, *args, **more)


def _removes(
    overlay: Overlay, real: Callable[..., Any], path: Any, /, *args: Any, **more: Any
) -> Any:
    place = overlay.changing(path)
    if place is None:
        return real(path, *args, **more)
    outside = overlay.has_outside(path)
    if os.path.lexists(place):
        real(place, *args, **more)
    elif not outside:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    elif real.__name__ == "rmdir" and os.listdir(path):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
    if outside:
        overlay.remove(path)
    return None


def _changes_attributes(
    overlay: Overlay, real: Callable[..., Any], path: Any, /, *args: Any, **more: Any
) -> Any:
    """Change the attributes of what was written; those of the user's own files stay."""
    follows = more.get("follow_symlinks", True) and not real.__name__.startswith("l")
    place = overlay.changing(path, follows=follows)
    if place is None:
        return real(path, *args, **more)
    return real(place, *args, **more) if os.path.lexists(place) else None


def _moves(
    overlay: Overlay, real: Callable[..., Any], src: Any, dst: Any, /, *args: Any, **more: Any
) -> None:
    source = overlay.changing(src)
    target = overlay.changing(dst)
    if source is not None:
        was_outside = overlay.has_outside(src)
        if was_outside and stat.S_ISDIR(os.stat(src).st_mode):
            raise PermissionError(
                errno.EACCES, "trainmark does not move a folder outside of its copy", src
            )
        overlay.copy_up(src, source)
    if target is not None:
        overlay.make_parents(dst, target)
    real(source or src, target or dst, *args, **more)
    if source is not None and was_outside:
        overlay.remove(src)


def _links(
    overlay: Overlay, real: Callable[..., Any], src: Any, dst: Any, /, *args: Any, **more: Any
) -> None:
    """Make a link; a user's own file is copied first, since it could be changed through it."""
    target = overlay.changing(dst)
    if target is not None:
        _require_absent(dst)
        overlay.make_parents(dst, target)
    real(overlay.updating(src), target or dst, *args, **more)


def _links_symbolically(
    overlay: Overlay, real: Callable[..., Any], src: Any, dst: Any, /, *args: Any, **more: Any
) -> None:
    target = overlay.changing(dst)
    if target is not None:
        _require_absent(dst)
        overlay.make_parents(dst, target)
    real(src, target or dst, *args, **more)


def _list(
    overlay: Overlay, real: Callable[..., Any], path: Any = ".", /, *args: Any, **more: Any
) -> Any:
    if isinstance(path, int):
        return real(path, *args, **more)
    folders = overlay.folders(path)
    if folders is None:
        return real(path, *args, **more)
    names: dict[Any, None] = {}
    for folder in folders:
        found = real(folder, *args, **more)
        names.update(dict.fromkeys(found))
    return [name for name in names if overlay.shows(path, name)]


def _list_entries(
    overlay: Overlay, real: Callable[..., Any], path: Any = ".", /, *args: Any, **more: Any
) -> Any:
    if isinstance(path, int):
        return real(path, *args, **more)
    folders = overlay.folders(path)
    if folders is None:
        return real(path, *args, **more)
    entries: dict[Any, Any] = {}
    for folder in folders:
        with real(folder) as found:
            for entry in found:
                entries.setdefault(entry.name, entry)
    return Entries([each for name, each in entries.items() if overlay.shows(path, name)])


class Entries:
    """What :func:`os.scandir` returns, of a folder whose content lies in two places."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Entries:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> Entries:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the iteration."""
        self._entries = iter(())


def replace_rmtree(overlay: Overlay, shutil: Any) -> None:
    """Replace the function of ``shutil`` that removes folders by descriptors."""
    real = shutil.rmtree

    @functools.wraps(real)
    def rmtree(path: Any, *args: Any, **more: Any) -> None:
        place = overlay.changing(path) if more.get("dir_fd") is None else None
        outside = place is not None and overlay.has_outside(path)
        if place is None or os.path.lexists(place) or not outside:
            real(place or path, *args, **more)
        if outside:
            overlay.remove(path)

    _set(shutil, "rmtree", rmtree)


def _require_absent(path: Any) -> None:
    """Raise FileExistsError if something of this path is seen."""
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)


def _with_first(
    lead: Callable[[Any], Any], args: tuple[Any, ...], more: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if args:
        return (lead(args[0]), *args[1:]), more
    if "path" in more:
        return args, {**more, "path": lead(more["path"])}
    return args, more
