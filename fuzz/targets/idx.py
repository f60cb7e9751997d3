"""IDX files: an array of the requested shape, or DamagedData; and it encodes back to the same
bytes."""

from __future__ import annotations

from pathlib import Path

from trainmark.data import idx
from trainmark.errors import DamagedData

SHAPES = ((2, 3, 3), (3,), (0,), (1, 1, 1), (60_000, 28, 28), (10_000,))


def one(data: bytes) -> None:
    """Parse one input. The first byte chooses the expected shape; the rest is the file."""
    shape = SHAPES[data[0] % len(SHAPES) if data else 0]
    payload = data[1:]
    try:
        array = idx.parse(payload, shape, Path("file"))
    except DamagedData:
        pass
    else:
        assert array.shape == shape
        assert idx.encode(array) == payload
    if len(shape) == 1:
        try:
            labels = idx.parse_labels(payload, shape[0], Path("file"))
        except DamagedData:
            return
        assert all(label < 10 for label in labels)
