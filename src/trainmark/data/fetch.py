"""Fill a cache folder from the mirrors.

They are tried one after another, until every file is present and correct.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from pathlib import Path

from trainmark.data import stored
from trainmark.data.catalog import KnownDataset, KnownFile, Mirror
from trainmark.data.download import TIMEOUT, DownloadFailed, Unreachable, download
from trainmark.data.on_bytes import OnBytes
from trainmark.data.unpack import NotTheArchive, unpack
from trainmark.regular import write_atomically

_TIMEOUTS_IN_A_ROW = 3


def fetch(
    known: KnownDataset,
    directory: Path,
    *,
    progress: OnBytes,
    timeout: tuple[float, float] = TIMEOUT,
) -> tuple[str, ...]:
    """Fetch the files of ``known`` that are missing or damaged in ``directory``.

    Downloads go to an unnamed temporary file; a file appears in ``directory`` complete, and only
    after its SHA-256 was verified.

    Without a network, each connection attempt may time out. After three such waits, the remaining
    mirrors are skipped.

    Returns:
        The mirrors that failed, each with its reason; a later one may have served what was missing.

    Raises:
        OSError: ``directory`` can't be written.
    """
    wanted = [file for file in known.files if not stored.is_sound(directory / file.name, file)]
    failures: list[str] = []
    waited = 0.0
    for mirror in known.mirrors:
        if not wanted:
            break
        if waited >= _TIMEOUTS_IN_A_ROW * timeout[0]:
            failures.append(
                f"{mirror.url}: not tried, since earlier mirrors could not be reached in "
                f"{waited:.0f} s"
            )
            continue
        begin = time.monotonic()
        try:
            _fetch_from(mirror, known, wanted, directory, progress, timeout)
        except Unreachable as error:
            waited += time.monotonic() - begin
            failures.append(f"{mirror.url}: {error}")
        except (DownloadFailed, NotTheArchive) as error:
            waited = 0.0
            failures.append(f"{mirror.url}: {error}")
    return tuple(failures)


def _fetch_from(
    mirror: Mirror,
    known: KnownDataset,
    wanted: list[KnownFile],
    directory: Path,
    progress: OnBytes,
    timeout: tuple[float, float],
) -> None:
    """Write the wanted files into ``directory``, and remove each from the list."""
    for url, files in _requests(mirror, wanted):
        most = sum(
            stored.most_bytes(file)
            for file in (known.files if mirror.packaging == "tar.gz" else files)
        )
        with tempfile.TemporaryFile(dir=directory) as archive:
            download(url, archive, most=most, progress=progress, timeout=timeout)
            archive.seek(0)
            if mirror.sha256 is not None:
                _check(hashlib.file_digest(archive, "sha256").hexdigest(), mirror.sha256, "archive")
                archive.seek(0)
            for file, payload in unpack(archive, mirror, files):
                _check(hashlib.sha256(payload).hexdigest(), file.sha256, file.name)
                write_atomically(directory / file.name, payload)
                wanted.remove(file)


def _requests(mirror: Mirror, wanted: list[KnownFile]) -> list[tuple[str, list[KnownFile]]]:
    """Return each URL to download, with the files that it contains."""
    if mirror.packaging == "tar.gz":
        return [(mirror.url, list(wanted))]
    suffix = ".gz" if mirror.packaging == "gzip" else ""
    return [(f"{mirror.url}{file.name}{suffix}", [file]) for file in wanted]


def _check(found: str, expected: str, name: str) -> None:
    if found != expected:
        raise DownloadFailed(
            f"served a different {name}: expected SHA-256 {expected}, found {found}"
        )
