"""A copy of the working folder for an experiment.

Several copies may exist at the same time, so large files can be linked.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from trainmark.execute.protocol.copies import Place
from trainmark.execute.protocol.wire import SCRATCH_PREFIX
from trainmark.execute.protocol.worker_commands import ENVIRONMENTS
from trainmark.inject.overlay import NOT_COPIED

_LARGE_BYTES = 16 << 20
"""Size in bytes above which a file is linked instead of copied."""
_MANY_ENTRIES = 256
"""Number of entries above which a folder is linked instead of copied."""
_MOST_BYTES = 1 << 26
"""Maximum number of bytes of all copied files; later files are linked."""
_MOST_FILES = 2_000
"""Maximum number of copied files; later files and folders are linked."""
_MOST_LINKS = 2_000
"""Maximum number of links, of files that are not copied; later folders are linked as a whole."""
_LINKED_FOLDERS = {*ENVIRONMENTS, *NOT_COPIED}
_LEFT_OUT = {*NOT_COPIED} - {*ENVIRONMENTS}


class _Copied:
    """What has been copied so far."""

    def __init__(self, root: Path) -> None:
        self.root = os.path.realpath(root)
        self.size = 0
        self.files = 0
        self.links = 0

    @property
    def goes_on(self) -> bool:
        """Whether further folders are looked into."""
        return self.files < _MOST_FILES and self.links < _MOST_LINKS

    def takes(self, path: Path) -> bool:
        """Whether a file is copied as well."""
        size = path.stat().st_size
        if size > min(_LARGE_BYTES, _MOST_BYTES - self.size) or self.files >= _MOST_FILES:
            return False
        self.size = self.size + size
        self.files = self.files + 1
        return True


def link_neighbours(folder: Path, place: Place) -> None:
    """Link what is next to a folder, and next to those above it, where a script looks for it.

    Args:
        folder: the user's folder.
        place: that of its copy.
    """
    copy = place.copy
    while copy != place.root:
        above = folder.parent
        entries = above.iterdir() if os.access(above, os.R_OK) else ()
        for path in itertools.islice(entries, _MOST_FILES):
            if path.name != folder.name and not path.name.startswith(SCRATCH_PREFIX):
                (copy.parent / path.name).symlink_to(path.absolute())
        folder = above
        copy = copy.parent


def linked(folder: Path, copy: Path, copied: _Copied | None = None, *, whole: bool = False) -> Path:
    """Copy a folder's small files, and link everything else.

    Something else must keep the linked files from being written.

    Args:
        whole: link only installed packages and what can't be copied, such as pipes; version control
            is left out.
    """
    copy.mkdir()
    copied = copied or _Copied(folder)
    # A folder's own files come first, since not all files are copied.
    for path in sorted(folder.iterdir(), key=os.path.isdir):
        target = copy / path.name
        if path.name.startswith(SCRATCH_PREFIX) or (whole and path.name in _LEFT_OUT):
            continue
        if not os.access(path, os.R_OK):
            small = False
        elif path.is_dir() and not path.is_symlink():
            few = copied.goes_on and sum(1 for _ in path.iterdir()) <= _MANY_ENTRIES
            small = (whole or few) and path.name not in _LINKED_FOLDERS
        else:
            small = path.is_file() and not path.is_symlink() and (whole or copied.takes(path))
        if not small:
            real = Path(os.path.realpath(path))
            copied.links += 1
            inside = path.is_symlink() and real.is_relative_to(copied.root)
            target.symlink_to(os.path.relpath(real, path.parent.resolve()) if inside else real)
        elif path.is_dir():
            linked(path, target, copied, whole=whole)
        else:
            shutil.copy2(path, target)
    return copy


def replace_files(copy: Path, files: Mapping[str, str]) -> None:
    """Give a copy other files than the original has.

    Args:
        copy: the copy of a folder.
        files: texts, by their path in it.

    Raises:
        OSError: a folder of the copy is a link, so the original would be changed.
    """
    for name, text in files.items():
        file = copy / name
        if not file.parent.resolve().is_relative_to(copy.resolve()):
            raise OSError(f"{name} can't be replaced in a copy: its folder is linked, not copied")
        mode = file.stat().st_mode if file.exists() else None
        file.unlink(missing_ok=True)  # it may be a link to the original
        file.write_text(text, "utf-8")
        if mode is not None:
            file.chmod(mode)
