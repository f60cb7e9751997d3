"""``fast`` on PyTorch: a plain loop, since Keras's layers run there one operation at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from trainmark.backends.base import EpochPlan
from trainmark.backends.keras.fast import FastTrainer


class TorchTrainer(FastTrainer):
    """Steps in a Python loop; nothing is fetched in it."""

    def compile(self, plan: EpochPlan) -> bool:  # noqa: ARG002
        """Nothing is compiled."""
        return False

    def _run(self, size: int, step: int, count: int, example: int, rows: Any, tick: Callable[[], None]) -> Any:
        order = self._order.long()
        for number in range(count):
            x, y = self._images, self._train_labels
            if self._held:
                x, y = x[:size], y[:size]
            elif not self._plan.whole:
                start = example + number * size
                indices = order[start : start + size]
                x, y = x.index_select(0, indices), y.index_select(0, indices)
            rows[step + number] = self._learn(x, y)
            tick()
        return rows

    def _learn(self, x: Any, y: Any) -> Any:
        self._network.zero_grad()
        loss, row = self._batch_loss(x, y)
        loss.backward()
        variables = self._network.trainable_variables
        with torch.no_grad():
            self._optimizer.apply([variable.value.grad for variable in variables], variables)
        return row.detach()
