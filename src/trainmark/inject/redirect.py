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
_ATTRIBUTES = (
    "chmod",
    "lchmod",
    "fchmod",
    "chown",
    "lchown",
    "fchown",
    "utime",
    "setxattr",
    "removexattr",
    "chflags",
)
"""Functions of ``os`` that change a file's attributes."""
_FOLDERS = {"dir_fd": 0, "src_dir_fd": 0, "dst_dir_fd": 1}
"""Arguments that are descriptors of folders, and which of the paths starts there."""

_set = setattr
_readlink = os.readlink


def install(overlay: Overlay) -> None:
    """Send what this process writes outside of its copy to the overlay's folder, from now on."""
    by_name = {
        **dict.fromkeys(_READ, functools.partial(_reads, overlay)),
        **dict.fromkeys(_READ_LINK, functools.partial(_reads, overlay, follows=False)),
        **dict.fromkeys(_MAKE, functools.partial(_makes, overlay)),
        **dict.fromkeys(_REMOVE, functools.partial(_removes, overlay)),
        **dict.fromkeys(_ATTRIBUTES, functools.partial(_changes_attributes, overlay)),
        **dict.fromkeys(("rename", "replace"), functools.partial(_moves, overlay)),
        "truncate": functools.partial(_updates, overlay),
        "link": functools.partial(_links, overlay),
        "symlink": functools.partial(_links_symbolically, overlay),
        "listdir": functools.partial(_list, overlay),
        "scandir": functools.partial(_list_entries, overlay),
    }
    replaced = _replace_opening(overlay)
    for name, by in by_name.items():
        if hasattr(os, name):
            replaced.append(_replace(name, by))
    _replace_in_modules(replaced)
    sys.path_hooks.insert(0, functools.partial(_finder, overlay))


def _finder(overlay: Overlay, entry: str) -> Any:
    """Return what finds modules where an entry of ``sys.path`` leads, as above the copy.

    Python's import asks the system itself.

    Raises:
        ImportError: the entry leads where it says, or nothing can be found there.
    """
    place = overlay.reading(entry)
    if place == entry:
        raise ImportError(entry)
    for hook in sys.path_hooks:
        if getattr(hook, "func", None) is _finder:
            continue
        try:
            return hook(place)
        except ImportError:
            continue
    raise ImportError(entry)


class Replaced:
    """A function that was replaced.

    Like one of compiled code, it is not bound to an object whose class has it as an attribute, as
    that of ``pathlib`` has in Python 3.10.

    Args:
        real: the function.
        by: called in its place.
        module: that has it under its name, for pickling.
    """

    def __init__(self, real: Callable[..., Any], by: Callable[..., Any], module: str) -> None:
        functools.update_wrapper(self, real)
        self.__module__ = module
        self.__name__: str = real.__name__
        self.__wrapped__ = real
        self._by = by

    def __call__(self, *args: Any, **more: Any) -> Any:
        """Call the other function."""
        return self._by(*args, **more)

    def __reduce__(self) -> str:
        return self.__name__


def _replace(name: str, by: Callable[..., Any]) -> Replaced:
    """Replace a function of ``os`` by one that is given the real one first.

    Functions that change files are replaced in the module that defines them, too; the others are
    not, since Python's own import uses them there.
    """
    real = getattr(os, name)

    def call(*args: Any, **more: Any) -> Any:
        if more.keys() & _FOLDERS.keys():
            args, more = _without_descriptors(name, args, more)
            if any(more.get(each) is not None for each in _FOLDERS):
                return real(*args, **more)  # the kernel decides
        return by(real, *args, **more)

    replaced = Replaced(real, call, "os")
    _put(replaced)
    if name not in (*_READ, *_READ_LINK, "listdir", "scandir"):
        _set(sys.modules[os.name], name, replaced)
    return replaced


def _put(replaced: Replaced) -> None:
    """Put a function of ``os`` in its place."""
    _set(os, replaced.__name__, replaced)
    for functions in (
        os.supports_dir_fd,
        os.supports_effective_ids,
        os.supports_fd,
        os.supports_follow_symlinks,
    ):
        if replaced.__wrapped__ in functions:
            functions.add(replaced)


def _replace_opening(overlay: Overlay) -> list[Replaced]:
    real_open = builtins.open
    real_os_open = os.open

    def open_(file: Any, mode: str = "r", *args: Any, **more: Any) -> Any:
        if not isinstance(mode, str) or isinstance(file, int):
            return real_open(file, mode, *args, **more)
        if not set(mode) & set("wax+"):
            return real_open(overlay.reading(file), mode, *args, **more)
        if "x" in mode:
            _require_absent(file)
        place = overlay.writing(file, keeps=bool(set(mode) & set("ra")))
        return real_open(place, mode, *args, **more)

    def os_open(path: Any, flags: int, *args: Any, **more: Any) -> int:
        (path,), more = _without_descriptors("open", (path,), more)
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

    def open_of_import(path: Any, flags: int, *args: Any, **more: Any) -> int:
        """Refuse Python's import to keep compiled modules next to those outside of the copy."""
        if flags & _WRITES and overlay.changing(path) is not None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real_os_open(path, flags, *args, **more)

    replaced = Replaced(real_open, open_, "io")
    for module in (builtins, io, _io):
        _set(module, "open", replaced)
    replaced_in_os = Replaced(real_os_open, os_open, "os")
    _put(replaced_in_os)
    _set(sys.modules[os.name], "open", open_of_import)
    return [replaced, replaced_in_os]


def _replace_in_modules(replaced: list[Replaced]) -> None:
    """Replace functions that modules took over before, such as those that a ``.pth`` file imports.

    The system's module and this package keep the real ones.
    """
    by_real = {id(each.__wrapped__): each for each in replaced}
    kept = (os.name, _io.__name__, __package__)
    for module in list(sys.modules.values()):
        name = getattr(module, "__name__", "")
        if name.startswith(kept):
            continue
        classes = [each for each in vars(module).values() if isinstance(each, type)]
        for owner in (module, *(each for each in classes if each.__module__ == name)):
            for attribute, value in list(vars(owner).items()):
                by = by_real.get(id(getattr(value, "__func__", value)))
                if by is not None:
                    _set(owner, attribute, by)


def _without_descriptors(
    function: str, args: tuple[Any, ...], more: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with absolute paths instead of those from folders of descriptors."""
    paths = list(args)
    left = dict(more)
    for name in more.keys() & _FOLDERS.keys():
        position = 1 if function == "symlink" else _FOLDERS[name]
        folder = None if more[name] is None else _path_of(more[name])
        if folder is not None and position < len(paths) and not isinstance(paths[position], int):
            path = os.fspath(paths[position])
            folder_like = os.fsencode(folder) if isinstance(path, bytes) else folder
            paths[position] = os.path.join(folder_like, path)
            del left[name]
    return tuple(paths), left


def _path_of(descriptor: int) -> str | None:
    """Return the path of an open file; None for a pipe, or if the system has no /proc."""
    try:
        path = _readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None
    return path if os.path.isabs(path) and os.path.lexists(path) else None


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
    if outside and real.__name__ == "rmdir":
        if os.listdir(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
    elif outside and stat.S_ISDIR(os.lstat(path).st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if os.path.lexists(place):
        real(place, *args, **more)
    elif not outside:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if outside:
        overlay.remove(path)
    return None


def _changes_attributes(
    overlay: Overlay, real: Callable[..., Any], path: Any, /, *args: Any, **more: Any
) -> Any:
    """Change the attributes of what was written; those of the user's own files stay."""
    if isinstance(path, int):
        opened = _path_of(path)
        is_theirs = opened is not None and overlay.changing(opened) is not None
        return None if is_theirs else real(path, *args, **more)
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
    seen = _path_of(path) if isinstance(path, int) else path
    folders = overlay.folders(seen)
    if folders is None:
        return real(path, *args, **more)
    names: dict[Any, None] = {}
    for folder in folders:
        found = real(folder, *args, **more)
        names.update(dict.fromkeys(found))
    return [name for name in names if overlay.shows(seen, name)]


def _list_entries(
    overlay: Overlay, real: Callable[..., Any], path: Any = ".", /, *args: Any, **more: Any
) -> Any:
    seen = _path_of(path) if isinstance(path, int) else path
    folders = overlay.folders(seen)
    if folders is None:
        return real(path, *args, **more)
    entries: dict[Any, Any] = {}
    for folder in folders:
        with real(folder) as found:
            for entry in found:
                entries.setdefault(entry.name, entry)
    top = "" if isinstance(path, int) else os.fspath(path)
    return Entries(
        [Entry(each, top) for name, each in entries.items() if overlay.shows(seen, name)]
    )


class Entry:
    """An :class:`os.DirEntry` with the path that the script knows.

    Args:
        entry: the real one.
        folder: path of its folder.
    """

    def __init__(self, entry: Any, folder: Any) -> None:
        self._entry = entry
        self.path = os.path.join(folder, entry.name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return repr(self._entry)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """That of the real one, which scripts ask for."""
        return os.DirEntry


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
