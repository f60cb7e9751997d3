"""Read the files of a dataset from downloaded archives.

Nothing is extracted to disk: members are looked up by their exact names and read into memory, at
most a little more than their known size. So path traversal and decompression bombs have no effect.
"""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Iterator, Sequence
from typing import IO, TypeAlias, assert_never

from trainmark.data.catalog import KnownFile, Mirror

Members: TypeAlias = "Iterator[tuple[KnownFile, bytes]]"


class NotTheArchive(Exception):
    """Why an archive can't be used, as a clause."""


def unpack(archive: IO[bytes], mirror: Mirror, files: Sequence[KnownFile]) -> Members:
    """Yield each of ``files`` with its content, not yet verified.

    A gzip or plain file contains exactly one.

    Raises:
        NotTheArchive: the archive is damaged or lacks a file.
    """
    try:
        match mirror.packaging:
            case "gzip":
                with gzip.open(archive) as opened:
                    yield files[0], opened.read(files[0].size + 1)
            case "plain":
                yield files[0], archive.read(files[0].size + 1)
            case "tar.gz":
                yield from _tar(archive, mirror.folder, files)
            case _:
                assert_never(mirror.packaging)
    except NotTheArchive:
        raise
    except Exception as error:  # the readers don't document what they raise for a damaged archive
        raise NotTheArchive(f"served a {mirror.packaging} that can't be read: {error}") from error


def _tar(archive: IO[bytes], folder: str, files: Sequence[KnownFile]) -> Members:
    wanted = {folder + file.name: file for file in files}
    with tarfile.open(fileobj=archive, mode="r:gz") as opened:
        for member in opened:
            content = (
                opened.extractfile(member) if member.isreg() and member.name in wanted else None
            )
            if content is not None:
                file = wanted.pop(member.name)
                yield file, content.read(file.size + 1)
    if wanted:
        raise NotTheArchive(f"served an archive without {', '.join(wanted)}")
