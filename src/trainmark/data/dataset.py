"""A dataset in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CLASSES = 10
"""Every dataset here has ten classes, labelled 0 to 9."""


@dataclass(frozen=True, eq=False)
class Split:
    """Examples for training or testing. The arrays are read-only, since repeats in one process share them.

    Attributes:
        images: uint8 [examples, height, width, channels], C-contiguous; 0 is dark (in MNIST, paper).
        labels: uint8 [examples], each below ``CLASSES``.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]

    def __post_init__(self) -> None:
        self.images.flags.writeable = False
        self.labels.flags.writeable = False

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A dataset as found.

    Attributes:
        name: its name in the catalogue.
        train: training examples.
        test: test examples.
        sha256: checksum of these bytes, see ``trainmark.data.catalog.dataset_sha256``.
        complete: False if it is only a part of the named dataset.
    """

    name: str
    train: Split
    test: Split
    sha256: str
    complete: bool
