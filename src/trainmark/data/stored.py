"""One file of a dataset on disk, plain or compressed with gzip."""

from __future__ import annotations

import errno
import gzip
import hashlib
import zlib
from pathlib import Path

from trainmark import regular
from trainmark.data.catalog import KnownFile
from trainmark.data.damage import damaged

_GZIP_MAGIC = b"\x1f\x8b"
"""First bytes of gzip; no IDX file starts so, and no CIFAR-10 record, since 31 is no class."""
_GZIP_WBITS = 31
"""Argument of :mod:`zlib` for a gzip file."""
_BLOCK = 1 << 20
"""Bytes that are read and hashed at once."""
_GZIP_OVERHEAD = 1 << 16
"""Bytes that gzip may add to incompressible data, including header texts; generous."""


def most_bytes(known: KnownFile) -> int:
    """Return the largest size of a valid copy of the file on disk, compressed or not."""
    return known.size + known.size // 1000 + _GZIP_OVERHEAD


def read(path: Path, known: KnownFile) -> bytes:
    """Read the uncompressed bytes of the file at ``path``, exactly ``known.size`` of them.

    Compression is detected from the content, not the name: browsers decompress a download and keep
    ``.gz``. At most one byte beyond the known size is decompressed, so a small file can't fill the
    memory.

    Raises:
        DamagedData: it can't be read, is truncated, not gzip, or has another size.
    """
    try:
        stored = regular.read(path, most_bytes(known))
    except OSError as error:
        if error.errno == errno.EFBIG:
            more = f"more than {known.size:,}"
            raise damaged(
                path, "wrong length", expected=f"{known.size:,} bytes", found=more
            ) from error
        raise damaged(path, "can't be read", found=error.strerror or str(error)) from error
    payload = _gunzip(stored, known, path) if stored.startswith(_GZIP_MAGIC) else stored
    if len(payload) != known.size:
        found = f"more than {known.size:,}" if len(payload) > known.size else f"{len(payload):,}"
        raise damaged(path, "wrong length", expected=f"{known.size:,} bytes", found=found)
    return payload


def is_sound(path: Path, known: KnownFile) -> bool:
    """Whether the file at ``path`` is the known one, byte for byte.

    It is read in blocks, to save memory.

    For the reason of False, use :func:`read` and the parsers.
    """
    found = hashlib.sha256()
    left = known.size
    try:
        if path.stat().st_size > most_bytes(known):
            return False
        with path.open("rb") as file:
            compressed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        with gzip.open(path) if compressed else path.open("rb") as file:
            while block := file.read(min(left + 1, _BLOCK)):
                left -= len(block)
                found.update(block)
                if left < 0:
                    return False
    except (OSError, EOFError, zlib.error):
        return False
    return found.hexdigest() == known.sha256


def check(payload: bytes, known: KnownFile, path: Path) -> None:
    """Raise DamagedData unless the uncompressed ``payload`` is exactly the known file.

    It was read from ``path``.
    """
    found = hashlib.sha256(payload).hexdigest()
    if found != known.sha256:
        raise damaged(
            path, f"not the known {known.name}", expected=f"SHA-256 {known.sha256}", found=found
        )


def _gunzip(stored: bytes, known: KnownFile, path: Path) -> bytes:
    stream = zlib.decompressobj(_GZIP_WBITS)
    try:
        payload = stream.decompress(stored, known.size + 1)
    except zlib.error as error:
        raise damaged(path, "not a valid gzip file", found=str(error)) from error
    if not stream.eof and len(payload) <= known.size:
        raise damaged(
            path,
            "the gzip file is truncated",
            expected=f"{known.size:,} bytes inside",
            found=f"{len(payload):,} bytes before its end",
        )
    return payload
