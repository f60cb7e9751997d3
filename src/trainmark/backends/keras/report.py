"""Collect what ``fit`` reports for each batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from trainmark.backends.base import Steps


class Report(keras.callbacks.Callback):
    """Collects the results of every batch of one or several calls of ``fit``.

    Keras fetches the results of batches in another thread, in parallel with training: batches
    arrive in any order, but all before their epoch ends.
    """

    async_safe = True

    def __init__(self, tick: Callable[[], None]) -> None:
        super().__init__()
        self._tick = tick
        self._begun = False
        self._epochs: list[dict[int, dict[str, float]]] = []

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Reset: no batch is queued."""
        self._begun = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Restart the count of batches."""
        self._epochs.append({})

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Tick for the previous batch, which is queued.

        Keras calls this in the training thread, so ticks don't race.
        """
        if self._begun:
            self._tick()
        self._begun = True

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Keep the results of the batch."""
        self._epochs[-1][batch] = logs

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
        """Tick for the last batch."""
        self._tick()

    def steps(self, sizes: Sequence[int], *, has_l2: bool) -> Steps:
        """Return the results of the steps, of ``sizes`` examples each."""
        rows = [[epoch[batch] for batch in sorted(epoch)] for epoch in self._epochs]
        examples = np.split(np.array(sizes), np.cumsum([len(epoch) for epoch in rows])[:-1])
        # Keras's accuracy is a mean since the epoch's start; times the examples so far it gives the
        # hits so far.
        hits_so_far = [
            np.rint(np.array([row["accuracy"] for row in epoch]) * np.cumsum(count))
            for epoch, count in zip(rows, examples, strict=True)
        ]
        every = list(itertools.chain.from_iterable(rows))
        return Steps(
            np.array([row["batch_loss"] for row in every]),
            np.array([row["batch_l2_loss"] for row in every]) if has_l2 else None,
            np.concatenate([np.diff(hits, prepend=0) for hits in hits_so_far]).astype(np.int64),
        )
