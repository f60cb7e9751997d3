"""A text file as tokens, one per character."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainmark.data.damage import damaged


def parse(payload: bytes, vocabulary: str, path: Path) -> NDArray[np.uint8]:
    """Return the vocabulary index of each character of an ASCII file.

    Raises:
        DamagedData: a character is not in the vocabulary.
    """
    numbers = np.full(256, len(vocabulary), np.uint8)
    numbers[list(vocabulary.encode("ascii"))] = np.arange(len(vocabulary))
    tokens = numbers[np.frombuffer(payload, np.uint8)]
    unknown = np.flatnonzero(tokens == len(vocabulary))
    if unknown.size:
        place = int(unknown[0])
        raise damaged(
            path,
            "a character is not in the vocabulary",
            expected=f"one of {vocabulary!r}",
            found=f"{payload[place : place + 1]!r} at {place:,}",
        )
    return tokens
