from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trainmark.data import cifar10
from trainmark.errors import DamagedData

HERE = Path("folder/data_batch_1.bin")


def test_a_record_is_a_label_and_three_planes() -> None:
    record = bytes([6]) + bytes([10]) * 1024 + bytes([20]) * 1023 + bytes([21]) + bytes([30]) * 1024
    images, labels = cifar10.parse(record * 2, 2, HERE)
    assert images.shape == (2, 32, 32, 3)
    assert labels.tolist() == [6, 6]
    assert images[1, 0, 0].tolist() == [10, 20, 30]
    assert images[1, 31, 31].tolist() == [10, 21, 30]


def test_rows_come_before_columns() -> None:
    pixels = np.zeros(3072, np.uint8)
    pixels[1] = 1  # second byte of the red plane
    images, _ = cifar10.parse(b"\0" + pixels.tobytes(), 1, HERE)
    assert np.argwhere(images).tolist() == [[0, 0, 1, 0]]


@pytest.mark.parametrize("length", [0, 1, 3072, 3074, 2 * 3073])
def test_wrong_lengths_are_refused(length: int) -> None:
    with pytest.raises(DamagedData, match="wrong length") as caught:
        cifar10.parse(bytes(length), 1, HERE)
    assert "3,073 bytes" in caught.value.expected
    assert caught.value.found == f"{length:,} bytes"


def test_a_label_that_is_no_class_is_refused() -> None:
    with pytest.raises(DamagedData, match="found 10 at example 1"):
        cifar10.parse(bytes(3073) + bytes([10]) + bytes(3072), 2, HERE)
