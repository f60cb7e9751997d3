"""Keeps what ``fit`` reports for each batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from trainmark.backends.base import Steps


class Report(keras.callbacks.Callback):
    """Collects the results of every batch of one ``fit``, or of several.

    Keras fetches what a batch returned in a thread beside the training, and may go on doing so: batches come in any
    order, but all before their epoch ends.
    """

    async_safe = True

    def __init__(self, tick: Callable[[], None]) -> None:
        super().__init__()
        self._tick, self._begun = tick, False
        self._epochs: list[dict[int, dict[str, float]]] = []

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """No batch is queued."""
        self._begun = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Batches are counted anew."""
        self._epochs.append({})

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        """The batch before is queued. Called by the training itself, so ticks don't race."""
        if self._begun:
            self._tick()
        self._begun = True

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Keep what it returned."""
        self._epochs[-1][batch] = logs

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
        """The last batch is queued too."""
        self._tick()

    def steps(self, sizes: Sequence[int], *, has_l2: bool) -> Steps:
        """The results of the steps, of ``sizes`` examples each."""
        rows = [[epoch[batch] for batch in sorted(epoch)] for epoch in self._epochs]
        examples = np.split(np.array(sizes), np.cumsum([len(epoch) for epoch in rows])[:-1])
        # Keras's accuracy runs on from an epoch's start; times the examples so far it counts the hits so far.
        hits_so_far = [
            np.rint(np.array([row["accuracy"] for row in epoch]) * np.cumsum(count))
            for epoch, count in zip(rows, examples, strict=True)
        ]
        every = [row for epoch in rows for row in epoch]
        return Steps(
            np.array([row["batch_loss"] for row in every]),
            np.array([row["batch_l2_loss"] for row in every]) if has_l2 else None,
            np.concatenate([np.diff(hits, prepend=0) for hits in hits_so_far]).astype(np.int64),
        )
