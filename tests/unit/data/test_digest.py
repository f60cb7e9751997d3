from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from trainmark.data import catalog, stored
from trainmark.errors import DamagedData

from .samples import Sample


def test_a_dataset_is_named_by_what_sha256sum_prints(some_digits: Sample, tmp_path: Path) -> None:
    some_digits.write(tmp_path)
    names = [file.name for file in some_digits.known.files]
    listing = subprocess.run(
        ["sha256sum", *names], cwd=tmp_path, check=True, capture_output=True
    ).stdout
    assert catalog.dataset_sha256(some_digits.known.files) == hashlib.sha256(listing).hexdigest()


def test_one_wrong_bit_is_noticed(some_digits: Sample) -> None:
    file = some_digits.known.files[0]
    payload = bytearray(some_digits.contents[file.name])
    stored.check(bytes(payload), file, Path(file.name))
    payload[5000] ^= 1
    with pytest.raises(DamagedData, match=f"SHA-256 {file.sha256}, found"):
        stored.check(bytes(payload), file, Path(file.name))
