"""``idiomatic``: the loop of JAX's MNIST example.

Python calls a jitted step with each batch as NumPy arrays.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan, Job
from trainmark.backends.jax.trainer import JaxTrainer
from trainmark.workload.pixels import augment, distort
from trainmark.workload.tokens import Tokens

Batch = tuple[Any, Any]


class JaxIdiomaticTrainer(JaxTrainer):
    """One batch at a time from the host."""

    def __init__(self, job: Job, device: Any) -> None:
        super().__init__(job, device)
        self._images, self._labels = self._training_set()
        self._step = jax.jit(self._learn)
        self._batches: Iterator[Batch]

    def compile(self, plan: EpochPlan) -> bool:
        """Run one step of each batch size; steps are pure, so the results are discarded."""
        for size in dict.fromkeys(plan.sizes):
            batch = self._whole if plan.whole else self._taken(np.zeros(size, np.int64), None)
            jax.block_until_ready(self._step(self._training, *batch, self._key))
        return True

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Draw an order if none is given."""
        batches = self._drawn(plan)
        self._batches = (
            self._held(batches) if {"input", "copy"} & self._job.options.without else batches
        )

    def train(self, steps: int, tick: Callable[[], None]) -> list[Array]:
        """Run the loop; losses stay on the device."""
        results = []
        for _ in range(steps):
            x, y = next(self._batches)
            self._training, row = self._step(self._training, x, y, self._key)
            results.append(row)
            tick()
        return results

    @functools.cached_property
    def _whole(self) -> Batch:
        """Return the dataset as one batch.

        It is copied to the device once, as in the published script.
        """
        x, y = self._taken(slice(None), None)
        return self._put(x), self._put(y)

    def _drawn(self, plan: EpochPlan) -> Iterator[Batch]:
        order = self._order_of(plan)
        start = 0
        for size in plan.sizes:
            some: Any = slice(start, start + size)
            draws = None if plan.augmented is None else plan.augmented[some]
            if order is None and draws is None:
                yield self._whole
            else:
                yield self._taken(slice(None) if order is None else order[some], draws)
            start += size

    def _held(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Repeat the first batch; already on the device if copies are omitted."""
        x, y = next(batches)
        yield from itertools.repeat(
            (self._put(x), self._put(y)) if "copy" in self._job.options.without else (x, y)
        )

    def _taken(self, examples: Any, draws: NDArray[np.int64] | None) -> Batch:
        spec = self._workload.input
        x = self._images[examples]
        if isinstance(spec, Tokens):
            return x.astype(np.int32), self._labels[examples].astype(np.int32)
        if self._job.distorts:
            x = distort(spec, x, self._rng, self._dtype)
        return x if draws is None else augment(spec, x, draws), self._labels[examples]
