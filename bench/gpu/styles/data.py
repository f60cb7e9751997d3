"""A training set on the device, and batches of it that a captured step can gather."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gpu.subjects import SEED, Subject
from trainmark.backends.torch.pixels import augment, transform
from trainmark.workload.pixels import Input, draw_augmentation

DRAWS = 1 << 16
"""Number of examples whose order is drawn in advance; then the order repeats."""


class BatchesOnDevice:
    """Gathers batches in a random order without the host, as trainmark's `fast` does.

    Args:
        subject: the workload and its data.
        device: where the data are kept.
        layout: memory format of the images; None for text.
    """

    def __init__(
        self, subject: Subject, device: torch.device, layout: torch.memory_format | None
    ) -> None:
        size = subject.workload.batches.size
        assert isinstance(size, int), "a batch that is the whole training set is not gathered"
        self._spec: Any = subject.workload.input
        self._layout = layout
        train = subject.data.train
        rng = np.random.default_rng(SEED)
        count = DRAWS // size * size or size
        self._order = torch.from_numpy(rng.integers(len(train), size=count)).to(device)
        self._within = torch.arange(size, device=device)
        self._place = torch.zeros((), dtype=torch.int64, device=device)
        if train.tokens is not None:
            tokens = torch.tensor(train.tokens, dtype=torch.int64, device=device)
            self._x = tokens[:-1].unfold(0, self._spec.length, 1)
            self._y = tokens[1:].unfold(0, self._spec.length, 1)
            return
        assert isinstance(self._spec, Input)
        images = torch.tensor(train.images, device=device)
        self._distorts = self._spec.distortions is not None
        self._x = images if self._distorts else self._prepared(images)
        self._y = torch.tensor(train.labels, dtype=torch.int64, device=device)
        if self._spec.augment is not None:
            self._draws = torch.from_numpy(draw_augmentation(self._spec, count, rng)).to(device)

    def next(self) -> tuple[Tensor, Tensor]:
        """Gather the next batch, ``[batch, ...]``, and its labels."""
        places = (self._place + self._within) % len(self._order)
        self._place.add_(len(self._within))
        taken = self._order[places]
        y = self._y.index_select(0, taken)
        if self._layout is None:
            return self._x.index_select(0, taken), y
        if self._spec.augment is not None:
            x = augment(self._spec, self._x, self._draws[places], taken)
            return x.contiguous(memory_format=self._layout), y
        x = self._x[taken]  # index_select would not keep the channels last
        return (self._prepared(x) if self._distorts else x), y

    def _prepared(self, images: Tensor) -> Tensor:
        assert self._layout is not None
        return transform(self._spec, images, torch.float32).contiguous(memory_format=self._layout)
