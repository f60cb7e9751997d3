"""Which files of a dataset a folder holds, judged by their names alone."""

from __future__ import annotations

import contextlib
import stat
from dataclasses import dataclass
from pathlib import Path

from trainmark.data.catalog import KnownDataset, KnownFile
from trainmark.errors import DamagedData


@dataclass(frozen=True)
class Held:
    """One known file and where it lies, plain or as ``.gz``."""

    known: KnownFile
    path: Path


@dataclass(frozen=True)
class Holding:
    """What a folder holds of a dataset: at least one file.

    Attributes:
        directory: the folder in which the files lie.
        files: what is there, in the catalogue's order.
        missing: names of what is not.
        usable: whether it can be trained on, be it only a part.
    """

    directory: Path
    files: tuple[Held, ...]
    missing: tuple[str, ...]
    usable: bool

    @property
    def complete(self) -> bool:
        """Whether every file is there."""
        return not self.missing


def look(known: KnownDataset, directory: Path) -> Holding | None:
    """What lies directly in ``directory``, or None when nothing of the dataset does."""
    held: list[Held] = []
    missing: list[str] = []
    for file in known.files:
        candidates = (file, *(part for part in known.parts if part.part_of == file.name))
        found = [Held(each, path) for each in candidates if (path := _path_of(each, directory)) is not None]
        held += found[:1]
        if not found or found[0].known is not file:
            missing.append(file.name)
    if not held:
        return None
    enough = known.splittable and {file.known.split for file in held} == {"train", "test"}
    return Holding(directory, tuple(held), tuple(missing), usable=not missing or enough)


def search(known: KnownDataset, folder: Path) -> Holding | None:
    """The first usable holding among the layouts of ``folder``, or None when it holds nothing of the dataset.

    Raises:
        DamagedData: it holds some files, but not enough of them. To fall past those in silence would not be what the
            person who put them there expects.
    """
    holdings = [found for layout in known.layouts if (found := look(known, folder / layout)) is not None]
    for holding in holdings:
        if holding.usable:
            return holding
    if holdings:
        first = holdings[0]
        raise DamagedData(
            f"{first.directory}: only a part of {known.name}",
            expected=f"{', '.join(first.missing)} too",
            found=", ".join(file.path.name for file in first.files),
            fix="Add what is missing, or name another folder with --data-dir.",
        )
    return None


def _path_of(file: KnownFile, directory: Path) -> Path | None:
    for name in (file.name, f"{file.name}.gz"):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # any other error is the caller's to tell
            if stat.S_ISREG((directory / name).stat().st_mode):
                return directory / name
    return None
