from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmark.data import idx
from trainmark.errors import DamagedData

HERE = Path("folder/some-file")
IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


def test_format_is_mnists() -> None:
    assert idx.encode(IMAGES)[:16] == bytes.fromhex("00000803 00000002 00000003 00000004")
    assert idx.encode(np.array([7, 9], np.uint8)) == bytes.fromhex("00000801 00000002 07 09")


def test_what_is_encoded_is_parsed() -> None:
    assert np.array_equal(idx.parse(idx.encode(IMAGES), IMAGES.shape, HERE), IMAGES)


@pytest.mark.parametrize(
    ("payload", "problem", "expected", "found"),
    [
        (b"\0\0\x08", "too short", "16 bytes", "3 bytes"),
        (struct.pack(">4I", 0x0801, 2, 3, 4) + bytes(24), "magic", "0x00000803", "0x00000801"),
        (struct.pack("<4I", 0x0803, 2, 3, 4) + bytes(24), "magic", "0x00000803", "0x03080000"),
        (struct.pack(">4I", 0x0803, 2, 4, 3) + bytes(24), "dimensions", "2 × 3 × 4", "2 × 4 × 3"),
        (
            struct.pack(">4I", 0x0803, 2**32 - 1, 3, 4) + bytes(24),
            "dimensions",
            "2 × 3 × 4",
            "4294967295 × 3 × 4",
        ),
        (idx.encode(IMAGES) + b"\0", "length", "40 bytes", "41 bytes"),
    ],
)
def test_wrong_files_are_refused(payload: bytes, problem: str, expected: str, found: str) -> None:
    with pytest.raises(DamagedData, match=problem) as caught:
        idx.parse(payload, IMAGES.shape, HERE)
    assert (caught.value.expected, caught.value.found) == (expected, found)
    assert str(HERE) in str(caught.value)
    assert caught.value.fix


@given(st.integers(0, len(idx.encode(IMAGES)) - 1))
def test_cut_off_anywhere_is_refused(length: int) -> None:
    with pytest.raises(DamagedData):
        idx.parse(idx.encode(IMAGES)[:length], IMAGES.shape, HERE)


def test_a_label_that_is_no_class_is_refused() -> None:
    labels = np.array([0, 9, 10, 3], np.uint8)
    with pytest.raises(DamagedData, match="found 10 at example 2"):
        idx.parse_labels(idx.encode(labels), 4, HERE)
