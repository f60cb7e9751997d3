"""Keeps the files that a complete run has written in its copy of the user's folder."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

_OUTSIDE = "outside"
"""Folder of what was written to paths outside of the working folder."""


def keep_outputs(original: Path, copy: Path, elsewhere: Path, target: Path) -> None:
    """Move what a run has written to ``target``, unless another run has filled it.

    Args:
        original: the user's folder.
        copy: its copy, in which the run happened.
        elsewhere: the folder of what it wrote outside of the copy.
        target: folder that has all of it or does not exist.
    """
    if target.exists():
        return
    part = target.with_name(f".{target.name}-{os.getpid()}")
    try:
        for path in written(original, copy):
            _move(path, part / path.relative_to(copy))
        outside = _OUTSIDE
        while (part / outside).exists():  # the run has written a file of this name
            outside += "-"
        for path in _files(elsewhere):
            _move(path, part / outside / path.relative_to(elsewhere))
        if part.exists():
            with contextlib.suppress(OSError):  # another run was first
                part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def written(original: Path, copy: Path) -> Iterator[Path]:
    """Yield the files of a copy that are new or were changed."""
    for path in _files(copy):
        before = original / path.relative_to(copy)
        if not before.is_file() or _state(before) != _state(path):
            yield path


def _files(folder: Path) -> list[Path]:
    """Return the regular files below a folder, without following links."""
    found = [Path(place) / name for place, _, names in os.walk(folder) for name in names]
    return [path for path in found if path.is_file() and not path.is_symlink()]


def _state(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_size, about.st_mtime_ns


def _move(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(path, target)
