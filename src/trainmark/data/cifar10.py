"""CIFAR-10's binary files: only records of 3,073 bytes.

A record is one label byte, then 1,024 red, 1,024 green and 1,024 blue bytes, each plane row by row.
Source: https://www.cs.toronto.edu/~kriz/cifar.html, "Binary version".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainmark.data.damage import check_labels, damaged

SIDE = 32
"""Height and width of an image in pixels."""
CHANNELS = 3
"""Channels of a pixel: red, green and blue."""
RECORD = 1 + CHANNELS * SIDE * SIDE
"""Bytes of one example."""


def parse(payload: bytes, examples: int, path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Parse the examples in one file, without copying.

    Args:
        payload: the whole file.
        examples: how many it must contain.
        path: path of the file, for errors.

    Returns:
        Images uint8 [examples, 32, 32, 3], a view that is channel-major in memory, and labels uint8
        [examples].

    Raises:
        DamagedData: wrong length, or a label that is not a class.
    """
    if len(payload) != examples * RECORD:
        raise damaged(
            path,
            "wrong length",
            expected=f"{examples:,} records of {RECORD:,} bytes = {examples * RECORD:,} bytes",
            found=f"{len(payload):,} bytes",
        )
    records = np.frombuffer(payload, np.uint8).reshape(examples, RECORD)
    labels = records[:, 0]
    check_labels(labels, path)
    return records[:, 1:].reshape(examples, CHANNELS, SIDE, SIDE).transpose(0, 2, 3, 1), labels
