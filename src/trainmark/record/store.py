"""A flat folder of records, ``OUT/<id>.json``, each written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from trainmark import locks, regular
from trainmark.errors import (
    ForeignRecord,
    OutputError,
    RecordError,
    RecordNotKept,
    UnwritableFolder,
    UsageError,
)
from trainmark.record import codec, folder_lock
from trainmark.record.record import Record
from trainmark.regular import write_atomically
from trainmark.scratch import kept_folder

MOST_BYTES = 512 << 20
"""Maximum size of a record; what a measured process may report of its run is half of that."""


class Store:
    """A folder that records are written to.

    Args:
        folder: path of the folder, which is created when the first record is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, record: Record, *, continues: bool = False) -> Path:
        """Write a record; this never replaces one of another run.

        Args:
            record: the record.
            continues: replace an existing record with the same id, which holds an earlier part of
                the same run.

        Returns:
            The path of its file.

        Raises:
            OutputError: the record's id is not a file name, or there is a record with this id.
            RecordNotKept: the folder can't be written, for example because the disk is full; the
                error names the file in the folder of temporary files that has the record, if it
                could be written there.
        """
        path = self.folder / f"{record.id}.json"
        content = codec.encode(record)
        if path.name != f"{record.id}.json":
            raise OutputError(
                f"the id {record.id!r} is no name of a file", fix="Report this as a bug."
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if path.exists() and not continues:
                raise OutputError(
                    f"{path} exists already",
                    fix="Records are never replaced; report this as a bug.",
                )
            write_atomically(path, content)
        except OSError as error:
            raise RecordNotKept(
                f"can't write the record {path.name} into {self.folder}",
                found=error.strerror or str(error),
                fix=_rescued(path.name, content),
            ) from error
        return path

    def write_all(self, records: Iterable[Record], *, continued: str | None = None) -> None:
        """Write all records that can be written.

        Args:
            records: the records.
            continued: id of the record that replaces an earlier record of the same run; None if
                there is none.

        Raises:
            OutputError: as for :meth:`write`.
            RecordNotKept: some could not be written; one error for all of them.
        """  # noqa: DOC501  (it takes the function that makes the error for its class)
        lost: list[RecordNotKept] = []
        for record in records:
            try:
                self.write(record, continues=record.id == continued)
            except RecordNotKept as error:
                lost.append(error)
        if lost:
            raise together(lost)

    def read_all(self) -> list[Record]:
        """Read every record of the folder.

        Returns:
            The records, oldest first; empty if the folder does not exist.

        Raises:
            RecordError: a file can't be read, is not a record, or was written by a newer trainmark.
        """
        return load(sorted(self.folder.glob("*.json")))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for a ``with`` block: a second run would disturb the first one's clock.

        Raises:
            OutputError: another process has locked it, or the lock file can't be used.
            UnwritableFolder: the folder can't be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            regular.require_writable(self.folder)
        except OSError as error:
            raise UnwritableFolder(self.folder, error) from error
        with folder_lock.locked(self.folder):
            self._sweep()
            yield

    def _sweep(self) -> None:
        """Remove unfinished files of killed processes, but none that is being written.

        The folder may be shared with other machines, whose locks are elsewhere.
        """
        for kind in ("json", "safetensors"):
            for part in self.folder.glob(f".*.{kind}.*part"):
                locks.remove_abandoned(part)


def load(paths: Iterable[Path]) -> list[Record]:
    """Load the records in files and folders.

    Args:
        paths: records and folders of records.

    Returns:
        The records, oldest first, without duplicates.

    Raises:
        UsageError: a path does not exist, or a folder has no records or can't be read.
        RecordError: a file can't be read, is not a record, or was written by a newer trainmark.
    """  # noqa: DOC501  (likewise)
    files: dict[Path, None] = {}
    for path in paths:
        if regular.is_folder(path):
            found = _records_in(path)
            if not found:
                raise UsageError(
                    f"no records in {path}",
                    expected="files that end in .json",
                    fix="Run: trainmark run",
                )
            files.update((Path(os.path.realpath(file)), None) for file in found)
        elif regular.is_file(path):
            files[Path(os.path.realpath(path))] = None
        else:
            there = regular.found_at(path)
            raise UsageError(
                f"no records at {path}", expected="a record or a folder of records", found=there
            )
    records: list[Record] = []
    strays: list[ForeignRecord] = []
    seen: set[bytes] = set()
    for file in files:
        try:
            record = read(file)
            # A copy in another folder is the same run.
            content = codec.content(record)
            if content not in seen:
                records.append(record)
            seen.add(content)
        except ForeignRecord as error:
            strays.append(error)
    if strays:
        raise _all_of(strays)
    return sorted(records, key=lambda record: (record.created, record.round, record.id))


def _records_in(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".json")
    except OSError as error:
        raise UsageError(f"{folder} can't be read", found=error.strerror or str(error)) from error


def together(lost: Sequence[RecordNotKept]) -> RecordNotKept:
    """Combine the errors of several records that could not be written.

    Args:
        lost: the errors, at least one.

    Returns:
        One error that names all of them.
    """
    if len(lost) == 1:
        return lost[0]
    return RecordNotKept(
        f"{len(lost)} records could not be written",
        found="".join(f"\n  {each.problem}: {each.found}. {each.fix}" for each in lost),
    )


def _all_of(strays: list[ForeignRecord]) -> ForeignRecord:
    """Combine the errors of several files, so that users need not find them one by one."""
    if len(strays) == 1:
        return strays[0]
    return ForeignRecord(
        f"{len(strays)} files are not trainmark records",
        expected="records alone among the files that end in .json",
        found="".join(f"\n  {stray.problem}: {stray.found}" for stray in strays),
        fix=f"\n{strays[0].fix}",
    )


def read(path: Path) -> Record:
    """Read one record.

    Args:
        path: path of its file.

    Returns:
        The record.

    Raises:
        RecordError: the file can't be read.
        ForeignRecord: the file is not a record.
        NewerRecord: the record was written by a newer trainmark.
    """
    try:
        text = regular.read(path, MOST_BYTES)
    except OSError as error:
        raise RecordError(f"{path} can't be read", found=error.strerror or str(error)) from error
    return codec.decode(text, str(path))


def _rescued(name: str, content: bytes) -> str:
    """Write a record elsewhere, for example if its disk is full; return what to do.

    It may take hours to make it again.
    """
    lost = "Make room there, or give another folder with --out."
    try:
        shelter = kept_folder()
    except OSError:
        return lost
    try:
        write_atomically(shelter / name, content)
    except OSError:
        shelter.rmdir()
        return lost
    return f"It was kept as {shelter / name}: make room, move it there, and --resume does the rest."


def safe_name(text: str, longest: int = 60) -> str:
    """Turn any text into a part of a file name.

    Args:
        text: the text.
        longest: maximum length of the result.

    Returns:
        The text with everything but letters, digits, dots and dashes replaced by dashes; never
        empty.
    """
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text).strip("-.")[:longest] or "x"
