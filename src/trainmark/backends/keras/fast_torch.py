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

    def _run(self, x: Any, y: Any, batches: Any, count: int, tick: Callable[[], None]) -> Any:
        rows = []
        for step in range(count):
            batch = (x, y) if batches is None else (x.index_select(0, batches[step]), y.index_select(0, batches[step]))
            rows.append(self._learn(*batch))
            tick()
        return torch.stack(rows)

    def _learn(self, x: Any, y: Any) -> Any:
        self._network.zero_grad()
        total, row = self._judge(self._learner(x, training=True), y, self._learner.losses)
        total.backward()
        variables = self._network.trainable_variables
        with torch.no_grad():
            self._optimizer.apply([variable.value.grad for variable in variables], variables)
        return row.detach()
