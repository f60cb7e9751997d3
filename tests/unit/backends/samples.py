"""Small datasets that a network learns in a second."""

from __future__ import annotations

from typing import Any

import numpy as np

from trainmark.backends.base import EpochPlan, Options
from trainmark.data.dataset import Dataset, Split


def a_dataset(train: int = 100, test: int = 50, shape: tuple[int, int, int] = (4, 4, 1)) -> Dataset:
    """Dark noise in which the pixel of the image's class is bright."""
    return Dataset("mnist", _split(train, shape, 1), _split(test, shape, 2), "0" * 64, True)


def a_text(train: int, test: int, length: int, vocabulary: int = 65) -> Dataset:
    """Random tokens in windows of ``length``."""
    parts = (
        np.random.default_rng(seed).integers(0, vocabulary, count).astype(np.uint8)
        for seed, count in ((1, train), (2, test))
    )
    one, other = (Split(tokens[None], tokens[None], tokens).windows(length) for tokens in parts)
    return Dataset("shakespeare", one, other, "0" * 64, True)


def _split(count: int, shape: tuple[int, int, int], seed: int) -> Split:
    rng = np.random.default_rng(seed)
    labels = (np.arange(count) % 10).astype(np.uint8)
    images = rng.integers(0, 100, (count, *shape), dtype=np.uint8)
    images.reshape(count, -1)[np.arange(count), labels] = 255
    return Split(images, labels)


def options(**changes: Any) -> Options:
    """Options of the NumPy backend, in double precision."""
    return Options(
        **({"style": "idiomatic", "device": "cpu", "precision": "fp64", "seed": 1} | changes)
    )


def in_order(*sizes: int) -> EpochPlan:
    """An epoch in stored order."""
    return EpochPlan(sizes, np.arange(sum(sizes)))


def no_tick() -> None:
    """This counts no steps."""
