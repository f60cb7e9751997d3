"""``idiomatic``: the training loop of PyTorch's tutorials.

It uses PyTorch's ``DataLoader`` and transforms each image.

If a batch is the whole dataset, that is one tensor instead, as in the published script. Texts have
no loader: a batch is a stack of slices, as in nanoGPT.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, default_collate

from trainmark.backends.base import EpochPlan, Job
from trainmark.backends.torch import optimizers
from trainmark.backends.torch.pixels import Images, augment, transform
from trainmark.backends.torch.trainer import TorchTrainer, random_order
from trainmark.workload.model import Weights
from trainmark.workload.optimizers import learning_rate_at
from trainmark.workload.tokens import Tokens

Batch = tuple[Tensor, Tensor]


class TorchIdiomaticTrainer(TorchTrainer):
    """One batch at a time from the host."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        spec = job.workload.input
        self._images = (
            None if isinstance(spec, Tokens) else Images(spec, job.data.train, self._dtype)
        )
        full = job.workload.batches.size == "full" and not job.distorts
        self._whole = self._whole_batch() if full else None

    def load(self, weights: Weights) -> None:
        """Set weights, a new optimiser, and a new learning-rate schedule."""
        super().load(weights)
        spec = self._workload.optimizer
        self._optimizer = optimizers.build(
            spec, self._network, decays=self._decays, quick=False, capturable=False
        )
        self._scheduler = None
        if spec.staircase:
            self._scheduler = torch.optim.lr_scheduler.StepLR(
                self._optimizer, spec.staircase.steps, spec.staircase.factor
            )
        self._step = 0

    def compile(self, plan: EpochPlan) -> bool:  # noqa: ARG002
        """Return False: nothing is compiled."""
        return False

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Create the loaders of these batches."""
        if plan.whole:
            batches = self._whole_batches(plan)
        elif self._images is None:
            batches = map(self._get_batch, plan.batches(self._order(plan)))
        else:
            batches = itertools.chain.from_iterable(self._loaders(plan, self._images))
        self._batches = self._held(batches) if {"input", "copy"} & self._without else batches

    def train(self, steps: int, tick: Callable[[], None]) -> Tensor:
        """Run the loop; losses stay on the device."""
        results = torch.zeros(steps, 3, dtype=self._dtype, device=self._device)
        for step, (x, y) in zip(range(steps), self._batches, strict=False):
            x, y = self._on_device(x, y)
            if self._workload.optimizer.lr_schedule is not None:
                optimizers.set_rate(
                    self._optimizer, learning_rate_at(self._workload.optimizer, self._step)
                )
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
            for group, rate in zip(
                self._optimizer.param_groups, self._scheduler.base_lrs, strict=True
            ):
                group["lr"] = rate * self._scheduler.gamma ** (step // self._scheduler.step_size)

    def _inputs(self, examples: NDArray[np.int64]) -> Tensor:
        return self._get_batch(examples)[0]

    def _get_batch(self, examples: Iterable[int]) -> Batch:
        """Return examples by their indices; windows of a text by their starts."""
        if self._images is not None:
            return default_collate([self._images[index] for index in examples])
        text = self._data.train
        x = torch.stack(
            [torch.from_numpy(text.images[start].astype(np.int64)) for start in examples]
        )
        y = torch.stack(
            [torch.from_numpy(text.labels[start].astype(np.int64)) for start in examples]
        )
        return x, y

    def _on_device(self, x: Tensor, y: Tensor) -> Batch:
        return x.to(self._device), y.to(self._device)

    def _held(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Repeat the first batch; already on the device if copies are omitted."""
        x, y = next(batches)
        yield from itertools.repeat(self._on_device(x, y) if "copy" in self._without else (x, y))

    def _loaders(self, plan: EpochPlan, images: Images) -> Iterator[Iterable[Batch]]:
        """Yield one loader per pass over the dataset.

        It has its own shuffle, or the given order.
        """
        size = plan.sizes[0]
        last = self._workload.batches.last
        if plan.order is None and plan.augmented is None:
            while True:
                yield DataLoader(images, batch_size=size, shuffle=True, drop_last=last == "drop")
        batches: list[Any] = [batch.tolist() for batch in plan.batches(self._order(plan))]
        if plan.augmented is not None:
            draws = torch.from_numpy(plan.augmented).split(plan.sizes)
            batches = [list(zip(*each, strict=True)) for each in zip(batches, draws, strict=True)]
        yield DataLoader(images, batch_sampler=batches)

    def _order(self, plan: EpochPlan) -> NDArray[np.int64]:
        order = plan.drawn(self._workload.batches, len(self._data.train), random_order)
        assert order is not None
        return order[: sum(plan.sizes)]

    def _whole_batches(self, plan: EpochPlan) -> Iterator[Batch]:
        spec = self._workload.augmented_input
        draws = itertools.repeat(None, len(plan.sizes))
        if plan.augmented is not None:
            draws = torch.from_numpy(plan.augmented).to(self._device).split(plan.sizes)
        for each in draws:
            x, y = self._whole or self._whole_batch()  # distorted images differ every time
            yield x if spec is None or each is None else augment(spec, x, each), y

    def _whole_batch(self) -> Batch:
        split = self._data.train
        if isinstance(self._workload.input, Tokens):
            return self._on_device(*self._get_batch(range(len(split))))
        x = transform(self._workload.input, torch.tensor(split.images), self._dtype)
        y = torch.tensor(split.labels, dtype=torch.int64)
        return x.contiguous().to(self._device), y.to(self._device)
