"""Backends whose true ratio is known: PyTorch's `fast` in stretches of 20 steps, and with one
repeated.

Both stop after the same steps, so they differ by one step in 20 and by nothing else. This also
holds for captured steps: a repeated step is the same graph, replayed at the same place in the
epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from trainmark.backends.base import Job, Options, Trainer
from trainmark.backends.torch.backend import TorchBackend
from trainmark.backends.torch.fast import TorchFastTrainer
from trainmark.data.dataset import Dataset
from trainmark.workload.model import Model
from trainmark.workload.spec import Workload

EVERY = 20
"""Number of steps after which one is repeated."""


class StretchedTrainer(TorchFastTrainer):
    """Trains in stretches of :data:`EVERY` steps."""

    repeats = False

    def train(self, steps: int, tick: Callable[[], None]) -> Any:
        """Queue the steps, stretch by stretch."""
        results = []
        while steps > 0:
            stretch = min(steps, EVERY - self._step % EVERY)
            results.append(super().train(stretch, tick))
            steps -= stretch
            if self.repeats and self._step % EVERY == 0:
                self._repeat_last_step()
        return torch.cat(results)

    def _repeat_last_step(self) -> None:
        size = self._plan.sizes[self._steps_of_epoch - 1]
        self._steps_of_epoch -= 1
        self._examples_of_epoch -= size
        self._step -= 1
        self._place.step.sub_(1)
        self._place.example.sub_(size)
        super().train(1, _no_tick)


class RepeatingTrainer(StretchedTrainer):
    """Takes the last step of each stretch twice."""

    repeats = True


def _no_tick() -> None:
    """A repeated step isn't counted."""


class Stretched(TorchBackend):
    """The reference."""

    trainer_class: type[StretchedTrainer] = StretchedTrainer

    def trainer(self, workload: Workload, model: Model, data: Dataset, options: Options) -> Trainer:
        """Create the trainer, whatever the style."""
        return self.trainer_class(Job(workload, model, data, options))


class Repeating(Stretched):
    """The same with 5 % more work."""

    trainer_class = RepeatingTrainer
