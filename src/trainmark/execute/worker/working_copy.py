"""A copy of the working folder for an experiment, of which dozens may be alive: what is large is linked, not copied."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from trainmark.execute.protocol.requests import NOT_COPIED

_LARGE_BYTES, _MANY_ENTRIES = 1 << 20, 256
_LINKED_FOLDERS = ("venv", "node_modules", *NOT_COPIED)


def linked(folder: Path, copy: Path) -> Path:
    """Copy a folder's small files; links everything else, which something else must keep from being written."""
    copy.mkdir()
    for path in folder.iterdir():
        target = copy / path.name
        if not os.access(path, os.R_OK):
            small = False
        elif path.is_dir() and not path.is_symlink():
            small = path.name not in _LINKED_FOLDERS and sum(1 for _ in path.iterdir()) <= _MANY_ENTRIES
        else:
            small = path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGE_BYTES
        if not small:
            target.symlink_to(path.resolve())
        elif path.is_dir():
            linked(path, target)
        else:
            shutil.copy2(path, target)
    return copy
