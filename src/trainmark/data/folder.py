"""Find the files of a dataset in a folder, by name only."""

from __future__ import annotations

import contextlib
import stat
from dataclasses import dataclass
from pathlib import Path

from trainmark.data.catalog import KnownDataset, KnownFile, dataset_sha256
from trainmark.errors import DamagedData


@dataclass(frozen=True)
class Held:
    """One known file and its path, plain or as ``.gz``."""

    known: KnownFile
    path: Path


@dataclass(frozen=True)
class Holding:
    """The files of a dataset in a folder, at least one.

    Attributes:
        directory: the folder with the files.
        files: the files found, in the catalogue's order.
        missing: names of the missing files.
        usable: whether it can be trained on, even if incomplete.
    """

    directory: Path
    files: tuple[Held, ...]
    missing: tuple[str, ...]
    usable: bool

    @property
    def sha256(self) -> str:
        """The checksum of a dataset of these files."""
        return dataset_sha256(file.known for file in self.files)

    @property
    def complete(self) -> bool:
        """Whether every file was found."""
        return not self.missing


def examine(known: KnownDataset, directory: Path) -> Holding | None:
    """Return the files of the dataset directly in ``directory``; None if there are none."""
    held: list[Held] = []
    missing: list[str] = []
    for file in known.files:
        candidates = (file, *(part for part in known.parts if part.part_of == file.name))
        found = []
        for each in candidates:
            path = _path_of(each, directory)
            if path is not None:
                found.append(Held(each, path))
        held += found[:1]
        if not found or found[0].known is not file:
            missing.append(file.name)
    if not held:
        return None
    enough = known.splittable and {file.known.split for file in held} == {"train", "test"}
    return Holding(directory, tuple(held), tuple(missing), usable=not missing or enough)


def search(known: KnownDataset, folder: Path) -> Holding | None:
    """Return the first usable holding among the layouts of ``folder``.

    The result is None if it has nothing of the dataset.

    Raises:
        DamagedData: it has some of the files, but not enough. Ignoring these would surprise the
            user who put them there.
    """
    examined = [examine(known, folder / layout) for layout in known.layouts]
    holdings = [holding for holding in examined if holding is not None]
    for holding in holdings:
        if holding.usable:
            return holding
    if holdings:
        first = holdings[0]
        raise DamagedData(
            f"{first.directory}: only a part of {known.name}",
            expected=f"also {', '.join(first.missing)}",
            found=", ".join(file.path.name for file in first.files),
            fix="Add the missing files, or name another folder with --data-dir.",
        )
    return None


def _path_of(file: KnownFile, directory: Path) -> Path | None:
    for name in (file.name, f"{file.name}.gz"):
        # The caller reports any other error.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if stat.S_ISREG((directory / name).stat().st_mode):
                return directory / name
    return None
