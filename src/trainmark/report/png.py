"""Images as PNG, without an image library."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


def png(image: NDArray[Any]) -> bytes:
    """Encode an image as PNG (specification 1.2).

    Args:
        image: ``[height, width, channels]`` of bytes, one channel for grey or three for RGB.
    """
    height, width, channels = image.shape
    # Each line begins with its filter type, and 0 is none.
    lines = np.zeros((height, 1 + width * channels), np.uint8)
    lines[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def as_address(image: NDArray[Any]) -> str:
    """Return the image as a ``data:`` URL."""
    return "data:image/png;base64," + base64.b64encode(png(image)).decode()
