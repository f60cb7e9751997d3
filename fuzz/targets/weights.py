"""Files of weights: float32 arrays that use each byte of the file once, or DamagedData."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from fuzz.structure import rewritten
from trainmark.errors import DamagedData
from trainmark.record import weights

_PLACE = Path(tempfile.mkdtemp(prefix="trainmark-fuzz-")) / "weights.safetensors"


def one(data: bytes) -> None:
    """Read one input, a whole file."""
    _PLACE.write_bytes(data)
    try:
        found = weights.load(_PLACE)
    except DamagedData:
        return
    assert sum(value.nbytes for value in found.values()) <= len(data)
    assert all(value.dtype == "float32" for value in found.values())


def mutated(data: bytes, most: int, seed: int) -> bytes:
    """Mutate the header as JSON and correct its length, half of the time."""
    import atheris

    length = int.from_bytes(data[:8], "little")
    text = rewritten(data[8 : 8 + length], random.Random(seed)) if seed % 2 else None
    if text is None:
        return bytes(atheris.Mutate(data, most))
    return (len(text).to_bytes(8, "little") + text + data[8 + length :])[:most]
