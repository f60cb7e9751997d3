"""``idiomatic``: the training loop of PyTorch's tutorials, with its ``DataLoader`` and per-image transforms.

If a batch is the whole dataset, that is one tensor instead, as in the published script.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader

from trainmark.backends.base import EpochPlan, Job
from trainmark.backends.torch import optimizers
from trainmark.backends.torch.pixels import Images, transform
from trainmark.backends.torch.trainer import TorchTrainer
from trainmark.workload.model import Weights

Batch = tuple[Tensor, Tensor]


class TorchIdiomaticTrainer(TorchTrainer):
    """One batch at a time from the host."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._images = Images(job.workload.input, job.data.train, self._dtype)
        full = job.workload.batches.size == "full" and not job.distorts
        self._whole = self._whole_batch() if full else None

    def load(self, weights: Weights) -> None:
        """Set weights, a new optimiser, and a new learning-rate schedule."""
        super().load(weights)
        spec = self._workload.optimizer
        self._optimizer = optimizers.build(spec, self._network, quick=False, capturable=False)
        self._scheduler = (
            torch.optim.lr_scheduler.StepLR(self._optimizer, spec.staircase.steps, spec.staircase.factor)
            if spec.staircase
            else None
        )
        self._step = 0

    def compile(self, plan: EpochPlan) -> bool:  # noqa: ARG002
        """Return False: nothing is compiled."""
        return False

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Create the loaders of these batches."""
        batches = self._whole_batches() if plan.whole else itertools.chain.from_iterable(self._loaders(plan))
        self._batches = self._held(batches) if {"input", "copy"} & self._without else batches

    def train(self, steps: int, tick: Callable[[], None]) -> Tensor:
        """Run the loop; losses stay on the device."""
        results = torch.zeros(steps, 3, dtype=self._dtype, device=self._device)
        for step, (x, y) in zip(range(steps), self._batches, strict=False):
            x, y = self._on_device(x, y)
            self._optimizer.zero_grad()
            self._learn(x, y, results[step])
            if self._scheduler is not None:
                self._scheduler.step()
            if self._workload.weight_average is not None and "optimizer" not in self._without:
                self._update_average(1 - self._workload.weight_average.decay_at(self._step))
            self._step += 1
            tick()
        return results

    def _continue_at(self, step: int) -> None:
        super()._continue_at(step)
        if self._scheduler is not None:
            self._scheduler.last_epoch = step
            for group, rate in zip(self._optimizer.param_groups, self._scheduler.base_lrs, strict=True):
                group["lr"] = rate * self._scheduler.gamma ** (step // self._scheduler.step_size)

    def _inputs(self, examples: NDArray[np.int64]) -> Tensor:
        return torch.stack([self._images[index][0] for index in examples])

    def _on_device(self, x: Tensor, y: Tensor) -> Batch:
        return x.to(self._device), y.to(self._device)

    def _held(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Repeat the first batch; already on the device if copies are omitted."""
        x, y = next(batches)
        yield from itertools.repeat(self._on_device(x, y) if "copy" in self._without else (x, y))

    def _loaders(self, plan: EpochPlan) -> Iterator[Iterable[Batch]]:
        """Yield one loader per pass over the dataset: with its own shuffle, or in the given order."""
        size, last = plan.sizes[0], self._workload.batches.last
        if plan.order is None:
            while True:
                yield DataLoader(self._images, batch_size=size, shuffle=True, drop_last=last == "drop")
        yield DataLoader(self._images, batch_sampler=[batch.tolist() for batch in plan.batches(plan.order)])

    def _whole_batches(self) -> Iterator[Batch]:
        while True:
            yield self._whole or self._whole_batch()  # distorted images differ every time

    def _whole_batch(self) -> Batch:
        split = self._data.train
        x = transform(self._workload.input, torch.tensor(split.images), self._dtype)
        y = torch.tensor(split.labels, dtype=torch.int64)
        return x.contiguous().to(self._device), y.to(self._device)
