"""Which files of a folder changed while a command ran."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from trainmark.execute.protocol.worker_commands import ENVIRONMENTS
from trainmark.inject.overlay import NOT_COPIED

_MOST_FILES = 50_000
"""Most files that are looked at."""
_NAMED = 5
"""Most files that are named."""

Snapshot = Mapping[Path, tuple[int, int]]
"""Size in bytes and time of the last change, in nanoseconds, of each file."""


def snapshot(folder: Path, results: Path) -> Snapshot:
    """Look at the files of a folder, without installed packages and version control.

    Args:
        folder: the folder.
        results: folder of trainmark's own records, which is left out.
    """
    found: dict[Path, tuple[int, int]] = {}
    for path in itertools.islice(_files(folder, results.absolute()), _MOST_FILES):
        try:
            about = path.lstat()
        except OSError:  # it was removed meanwhile
            continue
        found[path.relative_to(folder)] = about.st_size, about.st_mtime_ns
    return found


def note_of_changes(before: Snapshot, after: Snapshot) -> str | None:
    """Return a note that names the files which are new or changed; None without any."""
    names = [str(path) for path, state in after.items() if before.get(path) != state]
    if not names:
        return None
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"note: new or changed in this folder since the start: {', '.join(names[:_NAMED])}{more}"


def _files(folder: Path, results: Path) -> Iterator[Path]:
    left_out = (*NOT_COPIED, *ENVIRONMENTS)
    for place, folders, names in os.walk(folder):
        if Path(place) == results:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if name not in left_out)
        for name in sorted(names):
            yield Path(place) / name
