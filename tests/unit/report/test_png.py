"""Images as PNG, read back by the library that draws charts."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from trainmark.report.png import as_address, png


def decoded(data: bytes) -> tuple[int, int, int, bytes]:
    """Width, height, colour type and the raw bytes of the lines; raises where a checksum is
    wrong."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place = 8
    chunks = {}
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind = data[place + 4 : place + 8]
        body = data[place + 8 : place + 8 + length]
        (checksum,) = struct.unpack(">I", data[place + 8 + length : place + 12 + length])
        assert checksum == zlib.crc32(kind + body)
        chunks[kind] = body
        place += 12 + length
    assert list(chunks)[-1] == b"IEND"
    width, height, depth, colour, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert depth == 8
    return width, height, colour, zlib.decompress(chunks[b"IDAT"])


@pytest.mark.parametrize(("channels", "colour"), [(1, 0), (3, 2)])
def test_pixels_survive(channels: int, colour: int) -> None:
    image = np.random.default_rng(0).integers(0, 256, (5, 7, channels), dtype=np.uint8)
    width, height, found, lines = decoded(png(image))
    assert (width, height, found) == (7, 5, colour)
    every = np.frombuffer(lines, np.uint8).reshape(5, 1 + 7 * channels)
    assert not every[:, 0].any()
    np.testing.assert_array_equal(every[:, 1:].reshape(image.shape), image)


def test_an_address_needs_no_host() -> None:
    assert as_address(np.zeros((1, 1, 1), np.uint8)).startswith("data:image/png;base64,")
