"""A dataset in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Split:
    """Examples for training or testing.

    The arrays are read-only, since repeats in one process share them.

    Attributes:
        images: uint8 [examples, height, width, channels], C-contiguous; 0 is dark (in MNIST,
            paper). For text, its windows [examples, length], which are views.
        labels: the class of each example [examples]; for text, the token after each one [examples,
            length].
        tokens: the text that the examples are windows of; None for images.
    """

    images: NDArray[Any]
    labels: NDArray[Any]
    tokens: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        self.images.flags.writeable = False
        self.labels.flags.writeable = False

    @classmethod
    def of_text(cls, tokens: NDArray[Any]) -> Split:
        """Return a text as one example, for :meth:`windows` to split."""
        return cls(tokens[None], tokens[None], tokens)

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, count: int) -> Split:
        """Return a copy of the first ``count`` examples, or windows."""
        if self.tokens is not None:
            length = self.images.shape[1]
            tokens = np.array(self.tokens[: count + length])
            return Split.of_text(tokens).windows(length)
        return Split(np.array(self.images[:count]), np.array(self.labels[:count]))

    def windows(self, length: int) -> Split:
        """Return all windows of ``length`` tokens of a text, without a copy.

        The text must still be one example.
        """
        assert self.tokens is not None
        views = sliding_window_view(self.tokens, length)
        return Split(views[:-1], views[1:], self.tokens)


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

    def windows(self, length: int) -> Dataset:
        """Return a text as windows of ``length`` tokens."""
        return replace(self, train=self.train.windows(length), test=self.test.windows(length))
