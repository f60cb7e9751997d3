"""Generate ``random-images`` and ``random-tokens`` in memory.

Their workloads measure speed and not learning.

All machines generate the same bytes, since only raw words of PCG64 are used, whose stream NumPy
keeps stable.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.data.catalog import KnownDataset, KnownFile, dataset_sha256
from trainmark.data.dataset import Dataset, Split
from trainmark.errors import DataUnavailable

_SEED = 3


def draw(known: KnownDataset) -> Dataset:
    """Generate all arrays of ``known``.

    Raises DataUnavailable if they differ from the catalogue's.
    """
    arrays = [_array(known, file, place) for place, file in enumerate(known.files)]
    if known.is_text:
        train, test = map(Split.of_text, arrays)
    else:
        train = Split(*arrays[:2])
        test = Split(*arrays[2:])
    return Dataset(known.name, train, test, dataset_sha256(known.files), complete=True)


def _array(known: KnownDataset, file: KnownFile, place: int) -> NDArray[Any]:
    generator = np.random.PCG64([_SEED, place])
    if file.holds == "images":
        words = generator.random_raw(file.size // 8).astype("<u8")
        array = words.view(np.uint8).reshape(file.examples, *known.image_shape)
    else:
        array = (generator.random_raw(file.examples) % np.uint64(len(known.classes))).astype("<u2")
    found = hashlib.sha256(array.data).hexdigest()
    if found != file.sha256:
        raise DataUnavailable(
            f"this machine generates different {file.name}",
            expected=f"SHA-256 {file.sha256}",
            found=found,
            fix="Please report this with the version of NumPy.",
        )
    return array
