"""Dataset files on disk, gzipped or not, and archives of mirrors: the right number of bytes, or an
error."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

from trainmark.data.catalog import KnownFile, Mirror
from trainmark.data.stored import is_sound, read
from trainmark.data.unpack import NotTheArchive, unpack
from trainmark.errors import DamagedData

IMAGES = KnownFile("images", "train", "images", 2, 16 + 2 * 3 * 3, "0" * 64)
LABELS = KnownFile("labels", "train", "labels", 2, 8 + 2, "0" * 64)
FILES = (IMAGES, LABELS)
MIRRORS = tuple(Mirror("https://mirror.invalid/x", packaging) for packaging in ("tar.gz", "gzip"))
_PLACE = Path(tempfile.mkdtemp(prefix="trainmark-fuzz-")) / "file"


def one(data: bytes) -> None:
    """Read one input. The first byte chooses the packaging of the rest."""
    mirror = MIRRORS[data[0] % 2 if data else 0]
    if mirror.packaging == "gzip":
        _PLACE.write_bytes(data[1:])
        assert not is_sound(_PLACE, IMAGES)
        with contextlib.suppress(DamagedData):
            assert len(read(_PLACE, IMAGES)) == IMAGES.size
    try:
        for file, payload in unpack(io.BytesIO(data[1:]), mirror, FILES):
            assert len(payload) <= file.size + 1024 + 16
    except NotTheArchive as error:
        assert str(error)
