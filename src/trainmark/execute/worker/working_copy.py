"""A copy of the working folder, in which a command can write what it likes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_LARGE_BYTES, _MANY_ENTRIES = 1 << 20, 256
_LINKED_FOLDERS = (".git", ".venv", "venv", "node_modules")


def copied(folder: Path, copy: Path, linked: bool = False) -> Path:
    """Copy ``folder``; what is not a regular file, and large folders that no training writes to, become links.

    Args:
        linked: link large files and folders of many files, too; something else must keep the command from writing them.
    """
    copy.mkdir()
    for entry in os.scandir(folder):
        target, path = copy / entry.name, Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            large = linked and len(os.listdir(path)) > _MANY_ENTRIES
            is_copied = not large and entry.name not in _LINKED_FOLDERS
        else:
            large = linked and entry.stat(follow_symlinks=False).st_size > _LARGE_BYTES
            is_copied = not large and entry.is_file(follow_symlinks=False)
        if not is_copied:
            target.symlink_to(path.resolve())
        elif entry.is_dir():
            copied(path, target, linked)
        else:
            shutil.copy2(path, target)
    return copy
