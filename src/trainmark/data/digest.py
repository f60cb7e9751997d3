"""SHA-256 decides what a file is, and what a dataset is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from trainmark.data.catalog import KnownFile
from trainmark.data.damage import damaged


def check(payload: bytes, known: KnownFile, path: Path) -> None:
    """Raises DamagedData unless the uncompressed ``payload``, read from ``path``, is exactly the known file."""
    found = hashlib.sha256(payload).hexdigest()
    if found != known.sha256:
        raise damaged(path, f"not the {known.name} that is known", expected=f"SHA-256 {known.sha256}", found=found)


def of_dataset(files: Iterable[KnownFile]) -> str:
    """SHA-256 of what ``sha256sum`` prints for these files, uncompressed, in the catalogue's order."""
    listing = "".join(f"{file.sha256}  {file.name}\n" for file in files)
    return hashlib.sha256(listing.encode()).hexdigest()
