"""Discard an experiment's writes to files outside its folders.

None of the user's files change.

An experiment runs in a copy of the working folder, with a separate folder for temporary files. Its
checkpoints are worthless, but a script may save them under an absolute path, or delete old ones.
"""

from __future__ import annotations

import builtins
import bz2
import functools
import hashlib
import importlib
import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from ..patch import around
from . import ORIGINAL

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
"""Flags of :func:`os.open` with which a file may be written."""
_OWN = "TRAINMARK_OBSERVER"
"""Environment variable: the experiment's own folder, which contains the copy of the working
folder."""
_COMPILERS = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR")
"""Environment variables: folders for libraries that are loaded right after they are written."""
_LARGEST_COPY = 1 << 30
"""Most bytes of a file that is copied before it is changed."""
_CHANGE = (
    "remove",
    "unlink",
    "rmdir",
    "mkdir",
    "truncate",
    "rename",
    "replace",
    "link",
    "symlink",
    "chmod",
    "utime",
)
# The real functions, which are called after their names were replaced.
_set = setattr
_copy = shutil.copyfile
_replace = os.replace


class Writes:
    """The folders that an experiment may write to: its own, temporary files, caches and devices."""

    def __init__(self) -> None:
        caches = [
            os.environ.get("XDG_CACHE_HOME") or "~/.cache",
            (os.environ.get("TRITON_HOME") or "~") + "/.triton",
        ]
        caches += filter(None, map(os.environ.get, _COMPILERS))
        self._temporary = tempfile.gettempdir()  # it is read early, since scripts may change it
        mine = map(
            os.path.expanduser,
            [os.environ.get(_OWN, "/dev"), self._temporary, "/dev", "/proc", *caches],
        )
        self._allowed = [os.path.realpath(folder) + os.sep for folder in mine]
        self._original = os.path.realpath(os.environ.get(ORIGINAL, os.devnull)) + os.sep

    def elsewhere(self, path: Any) -> bool:
        """Return whether ``path`` is a file that may not be written.

        The innermost of the known folders decides.
        """
        try:
            real = os.path.realpath(os.fsdecode(path)) + os.sep
        except (TypeError, ValueError):  # it is a file descriptor or a file
            return False
        return not self._is_allowed(real)

    def _is_allowed(self, real: str) -> bool:
        around = [folder for folder in (self._original, *self._allowed) if real.startswith(folder)]
        return max(around, key=len, default=self._original) != self._original

    def _may_not_change(self, path: Any) -> bool:
        """Return whether ``path`` must not be replaced, removed or changed, except by opening it.

        This includes a link elsewhere that leads to one of the known folders, since the link itself
        would be replaced, and a device: a library that renames a file on top of it would replace it
        for the whole machine.
        """
        if self.elsewhere(path):
            return True
        try:
            folder, name = os.path.split(os.fsdecode(path))
            mode = os.stat(path).st_mode if os.path.exists(path) else 0
        except (TypeError, ValueError):  # it is a file descriptor or a file
            return False
        link = os.path.join(os.path.realpath(folder), name) + os.sep
        return stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or not self._is_allowed(link)

    def _instead(self, path: Any, *, copied: bool) -> str:
        """Return a temporary file for one that may not be written.

        It has the same content if that is ``copied``.
        """
        name = hashlib.sha256(os.path.realpath(os.fsencode(path))).hexdigest()
        instead = os.path.join(self._temporary, f"instead-{name[:20]}")
        if copied and not os.path.exists(instead):
            if os.path.getsize(path) > _LARGEST_COPY:
                raise PermissionError(
                    f"{path} opened for writing is too large to copy; open it with mode 'r'"
                )
            _copy(path, f"{instead}-{os.getpid()}")
            _replace(f"{instead}-{os.getpid()}", instead)  # atomic, for other processes
        return instead

    def _discarded(self) -> str:
        """Return the path of a temporary file for all that this process saves elsewhere.

        It is not the null device: a library may write another file and rename it to this path, and
        a script may change the mode of the file that it has opened. All writes share one file, so
        that many large checkpoints don't fill the disk.
        """
        return os.path.join(self._temporary, f"discarded-{os.getpid()}")

    def redirect(self) -> None:
        """Discard writes elsewhere from now on."""
        opened = builtins.open
        opens = os.open

        @functools.wraps(opened)
        def open_(file: Any, mode: str = "r", *args: Any, **more: Any) -> Any:
            if set(mode) & set("wax+") and self.elsewhere(file):
                kept = "r" in mode and os.path.isfile(file)
                file = self._instead(file, copied=kept) if "+" in mode else self._discarded()
                mode = mode.replace("x", "w")
            return opened(file, mode, *args, **more)

        @functools.wraps(opens)
        def opens_(path: Any, flags: int, *args: Any, **more: Any) -> int:
            if flags & _WRITES and more.get("dir_fd") is None and self.elsewhere(path):
                kept = os.path.isfile(path) and not flags & os.O_TRUNC
                path = self._instead(path, copied=kept)
                flags = flags & ~os.O_EXCL | os.O_CREAT
            return opens(path, flags, *args, **more)

        _set(builtins, "open", open_)
        _set(io, "open", open_)
        _set(os, "open", opens_)
        _set(bz2, "_builtin_open", open_)
        for name in _CHANGE:
            _set(
                os,
                name,
                self.unless_elsewhere(getattr(os, name), 1 if name in ("link", "symlink") else 0),
            )
        for name, position in (("rmtree", 0), ("copyfile", 1), ("move", 0)):
            _set(shutil, name, self.unless_elsewhere(getattr(shutil, name), position))

    def redirect_hdf5(self) -> None:
        """Keep in memory what h5py writes elsewhere; its library opens files by itself."""

        def opened(
            real: Callable[..., Any],
            file: Any,
            /,
            name: Any,
            mode: str = "r",
            *args: Any,
            **more: Any,
        ) -> None:
            if mode != "r" and not args and self.elsewhere(name):
                more.update(driver="core", backing_store=False)
            real(file, name, mode, *args, **more)

        h5py: Any = sys.modules.get("h5py")
        if h5py is not None and not hasattr(h5py.File.__init__, "__wrapped__"):
            around(h5py.File, "__init__", opened)

    def redirect_safetensors(self) -> None:
        """Discard what safetensors saves elsewhere.

        Its compiled code opens and renames files without Python.
        """
        if find_spec("safetensors") is None:
            return
        safetensors: Any = importlib.import_module("safetensors")
        if not hasattr(safetensors.serialize_file, "__wrapped__"):
            real = safetensors.serialize_file
            saves = self.to_nowhere(real, 1)
            for name in (
                "safetensors",
                "safetensors.torch",
                "safetensors.numpy",
                "safetensors.tensorflow",
            ):
                if getattr(sys.modules.get(name), "serialize_file", None) is real:
                    _set(sys.modules[name], "serialize_file", saves)

    def unless_elsewhere(self, does: Callable[..., Any], position: int = 0) -> Callable[..., Any]:
        """Return a function that does nothing if one of its arguments is a file elsewhere.

        Only arguments from ``position`` on count.
        """

        @functools.wraps(does)
        def done(*args: Any, **more: Any) -> Any:
            paths = (
                *args,
                *(value for name, value in more.items() if name in ("path", "src", "dst", "f")),
            )
            named = [
                each for each in paths[position:2] if isinstance(each, (str, bytes, os.PathLike))
            ]
            if more.get("dir_fd") is None and any(map(self._may_not_change, named)):
                return None
            return does(*args, **more)

        return done

    def to_nowhere(self, saves: Callable[..., Any], position: int) -> Callable[..., Any]:
        """Return a function that saves to a discarded file instead of a file elsewhere.

        The argument at ``position`` is the file.
        """

        @functools.wraps(saves)
        def saved(*args: Any, **more: Any) -> Any:
            if len(args) > position and self._may_not_change(args[position]):
                args = (*args[:position], self._discarded(), *args[position + 1 :])
            for name in ("f", "filename"):
                if name in more and self._may_not_change(more[name]):
                    more[name] = self._discarded()
            return saves(*args, **more)

        return saved


WRITES = Writes()
