"""Fills a cache folder from the mirrors, one after the other, until every file is there and right."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmark.data import digest, stored
from trainmark.data.catalog import KnownDataset, KnownFile
from trainmark.data.download import DownloadFailed, download
from trainmark.data.mirrors import Mirror
from trainmark.data.progress import Progress
from trainmark.data.reach import Probes
from trainmark.data.unpack import NotTheArchive, unpack
from trainmark.errors import DamagedData
from trainmark.regular import write_atomically


@dataclass(frozen=True)
class Patience:
    """How long mirrors are waited for, in seconds."""

    connect: float = 4.0
    """Until a host must have answered, all hosts together: without a network, that is when to give up."""
    stall: float = 15.0
    """How long a server may send nothing."""


PATIENCE = Patience()


def fetch(
    known: KnownDataset, directory: Path, *, progress: Progress, patience: Patience = PATIENCE
) -> tuple[str, ...]:
    """Fetches what is missing or damaged among the files of ``known`` in ``directory``.

    A file gets its name only after its SHA-256 was right. Until then what has arrived lies in ``*.part``, to be
    continued.

    Returns:
        The mirrors that were tried in vain, each with its reason; another may have served what was missing.

    Raises:
        OSError: ``directory`` can't be written.
    """
    wanted = [file for file in known.files if not _sound(directory / file.name, file)]
    failures: list[str] = []
    probes = Probes((mirror.url for mirror in known.mirrors), patience.connect).start()
    for mirror in known.mirrors:
        if not wanted:
            break
        visit = _Visit(mirror, known, directory, progress, patience.stall)
        try:
            probes.wait(mirror.url)
        except OSError as error:
            failures.append(f"{mirror.url}: {error.strerror or error}")
            continue
        try:
            visit.take(wanted)
        except DownloadFailed as error:
            failures.append(f"{mirror.url}: {error}")
    if not wanted:
        for part in directory.glob("*.part"):
            part.unlink()
    return tuple(failures)


@dataclass(frozen=True)
class _Visit:
    """What is needed to get files from one mirror."""

    mirror: Mirror
    known: KnownDataset
    directory: Path
    progress: Progress
    stall_seconds: float

    def take(self, wanted: list[KnownFile]) -> None:
        """Brings the wanted files into the cache, and strikes each from the list. Raises DownloadFailed."""
        if self.mirror.packaging == "gzip-files":
            for file in tuple(wanted):
                self._bring(f"{self.mirror.url}{file.name}.gz", stored.most_bytes(file), [file])
                wanted.remove(file)
        else:
            self._bring(self.mirror.url, sum(stored.most_bytes(file) for file in self.known.files), wanted)

    def _bring(self, url: str, most: int, wanted: list[KnownFile]) -> None:
        name = url.rpartition("/")[2]
        # Mirrors compress the same content differently, so what one began no other may continue.
        part = self.directory / f"{name}.{hashlib.sha256(url.encode()).hexdigest()[:8]}.part"
        resumed = part.exists()
        download(url, part, most=most, stall_seconds=self.stall_seconds, name=name, progress=self.progress)
        try:
            for file, payload in self._contents(part, tuple(wanted)):
                digest.check(payload, file, part)
                write_atomically(self.directory / file.name, payload)
                wanted.remove(file)
        except (DamagedData, NotTheArchive) as error:
            part.unlink()
            if not resumed:
                raise DownloadFailed(_clause(error)) from error
            self._bring(url, most, wanted)  # perhaps only the old part was wrong
        else:
            part.unlink()

    def _contents(self, part: Path, files: Sequence[KnownFile]) -> Iterator[tuple[KnownFile, bytes]]:
        if self.mirror.packaging == "gzip-files":
            return ((file, stored.read(part, file)) for file in files)
        # Where the archive is known it is not even opened before its checksum is right.
        if self.mirror.sha256 is not None and (found := digest.of_file(part)) != self.mirror.sha256:
            raise NotTheArchive(f"served another archive: expected SHA-256 {self.mirror.sha256}, found {found}")
        return unpack(part, self.mirror, self.known, files)


def _sound(path: Path, known: KnownFile) -> bool:
    try:
        digest.check(stored.read(path, known), known, path)
    except DamagedData:  # also when there is no such file
        return False
    return True


def _clause(error: DamagedData | NotTheArchive) -> str:
    if isinstance(error, NotTheArchive):
        return str(error)
    _, _, problem = error.problem.partition(": ")  # the path of the part file tells nobody anything
    expected = f", expected {error.expected}" if error.expected else ""
    return f"served a damaged file: {problem}{expected}, found {error.found}"
