"""IDX, the format of MNIST's files: big-endian words, then one byte per pixel or label.

Word 0 is the magic number: two zero bytes, 0x08 for "unsigned bytes", and the number of dimensions.
One word per dimension follows. Images are 0x00000803, count, rows, columns; labels are 0x00000801,
count. Source: http://yann.lecun.com/exdb/mnist/.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainmark.data.damage import check_labels, damaged

_UNSIGNED_BYTES = 0x0800


def encode(array: NDArray[np.uint8]) -> bytes:
    """Return the content of a file with ``array``."""
    header = struct.pack(f">{1 + array.ndim}I", _UNSIGNED_BYTES | array.ndim, *array.shape)
    return header + array.tobytes()


def parse(payload: bytes, shape: tuple[int, ...], path: Path) -> NDArray[np.uint8]:
    """Parse the array in an IDX file, without copying.

    Args:
        payload: the whole file, uncompressed.
        shape: required shape, such as ``(60000, 28, 28)`` or ``(60000,)``.
        path: path of the file, for errors.

    Raises:
        DamagedData: the file contains something else.
    """
    words = 1 + len(shape)
    if len(payload) < 4 * words:
        raise damaged(
            path,
            "too short for a header",
            expected=f"{4 * words} bytes",
            found=f"{len(payload)} bytes",
        )
    magic, *dimensions = struct.unpack_from(f">{words}I", payload)
    known = _UNSIGNED_BYTES | len(shape)
    if magic != known:
        raise damaged(path, "wrong magic number", expected=f"0x{known:08x}", found=f"0x{magic:08x}")
    if tuple(dimensions) != shape:
        raise damaged(path, "wrong dimensions", expected=_by(shape), found=_by(dimensions))
    length = 4 * words + math.prod(shape)
    if len(payload) != length:
        raise damaged(
            path, "wrong length", expected=f"{length:,} bytes", found=f"{len(payload):,} bytes"
        )
    return np.frombuffer(payload, np.uint8, offset=4 * words).reshape(shape)


def parse_labels(payload: bytes, examples: int, path: Path) -> NDArray[np.uint8]:
    """Parse the labels uint8 [examples] in an IDX file.

    Also raises DamagedData if one is not a class.
    """
    labels = parse(payload, (examples,), path)
    check_labels(labels, path)
    return labels


def _by(dimensions: tuple[int, ...] | list[int]) -> str:
    return " × ".join(map(str, dimensions))
