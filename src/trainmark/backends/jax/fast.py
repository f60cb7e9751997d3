"""``fast``: the dataset lives on the device, state is donated, and an epoch is one compiled scan over its batches.

The host sends the order of the examples and reads the results of all steps at the end. A last batch of another size
has a scan of its own. On a CPU, XLA runs convolutions inside a loop on one thread, so there a network with convolutions
runs one compiled step at a time, called from Python.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan, Options
from trainmark.backends.jax.pixels import distort
from trainmark.backends.jax.trainer import JaxTrainer, Training
from trainmark.data.dataset import Dataset
from trainmark.workload.layers import Conv2D
from trainmark.workload.model import Model
from trainmark.workload.pixels import prepare
from trainmark.workload.spec import Workload


class JaxFastTrainer(JaxTrainer):
    """Everything resident."""

    def __init__(self, workload: Workload, model: Model, data: Dataset, options: Options, device: Any) -> None:
        super().__init__(workload, model, data, options, device)
        convolves = any(isinstance(plan.layer, Conv2D) for plan in model.layers)
        self._longest = 1 if device.platform == "cpu" and convolves else None
        distorted = workload.input.distortions is not None
        images = data.train.images if distorted else prepare(workload.input, data.train.images, self._dtype)
        self._images, self._labels = self._put_data(images), self._put_data(data.train.labels.astype(np.int32))
        self._key = self._put(jax.random.key(options.seed))
        self._scan = jax.jit(self._spread(self._scanned), donate_argnums=0)
        self._compiled: dict[tuple[int, ...], Any] = {}
        self._plan = EpochPlan((), None)
        self._order: NDArray[np.int32] | None = None
        self._steps_of_epoch = self._examples_of_epoch = 0

    def compile(self, plan: EpochPlan) -> bool:
        """Compile the scans of an epoch like ``plan``."""
        for count, size in _stretches(plan.sizes, self._longest):
            self._program((count, 0 if plan.whole else size))
        return True

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Draw an order where none is given."""
        order = self._order_of(plan)
        self._plan, self._order = plan, None if order is None else order.astype(np.int32)
        self._steps_of_epoch = self._examples_of_epoch = 0

    def train(self, steps: int, tick: Callable[[], None]) -> list[Array]:
        """Queue steps, one scan for each batch size in a row; results stay on the device."""
        first = self._steps_of_epoch
        results = []
        for count, size in _stretches(self._plan.sizes[first : first + steps], self._longest):
            used = slice(self._examples_of_epoch, self._examples_of_epoch + count * size)
            order = np.zeros((count, 0), np.int32) if self._order is None else self._order[used].reshape(count, size)
            taken = jax.device_put(order, self._order_sharding)
            program = self._program(order.shape)
            self._training, rows = program(self._training, self._images, self._labels, taken, self._key)
            results.append(rows)
            self._examples_of_epoch += count * size
            for _ in range(count):
                tick()
        self._steps_of_epoch += steps
        return results

    def _program(self, shape: tuple[int, ...]) -> Any:
        """The compiled scan over an order of ``shape``, ``[steps, batch]``; a batch of 0 takes the whole set."""
        if shape not in self._compiled:
            order = jax.ShapeDtypeStruct(shape, np.int32, sharding=self._order_sharding)
            lowered = self._scan.lower(self._training, self._images, self._labels, order, self._key)
            self._compiled[shape] = lowered.compile()
        return self._compiled[shape]

    def _scanned(
        self, training: Training, images: Array, labels: Array, order: Array, key: Array
    ) -> tuple[Training, Array]:
        for_dropout, for_pixels = jax.random.split(key)

        def step(training: Training, indices: Array) -> tuple[Training, Array]:
            if "input" in self._options.without:
                size = order.shape[1] or len(images)
                x, y = images[:size], labels[:size]
            else:
                x, y = (images, labels) if not indices.size else (_rows(images, indices), _rows(labels, indices))
            if self._workload.input.distortions is not None:
                x = distort(self._workload.input, x, jax.random.fold_in(for_pixels, training.step), self._dtype)
            training, row = self._learn(training, x, y, for_dropout)
            return (training if self._optimizer else self._unsettled(training)), row

        if len(order) == 1:  # no loop, not even one of a single step
            training, row = step(training, order[0])
            return training, row[None]
        training, rows = lax.scan(step, training, order)
        return training, rows

    def _spread(self, scanned: Callable[..., Any]) -> Callable[..., Any]:
        """``scanned`` on all devices there are: on the one."""
        return scanned

    @property
    def _order_sharding(self) -> Any:
        return jax.sharding.SingleDeviceSharding(self._device)

    def _put_data(self, value: NDArray[Any]) -> Array:
        return self._put(value)

    def _unsettled(self, training: Training) -> Training:
        """The same, but XLA may not know it: of weights that never change it would compute much before the loop."""
        name = self._model.weighted_layers[0].kernel_name
        kernel = training.weights[name]
        corner = (0,) * kernel.ndim
        kernel = kernel.at[corner].set(jnp.where(training.step < 0, 0, kernel[corner]))
        return training._replace(weights={**training.weights, name: kernel})


def _rows(array: Array, indices: Array) -> Array:
    """The rows without a check of their bounds."""
    return array.at[indices].get(mode="promise_in_bounds")


def _stretches(sizes: tuple[int, ...], longest: int | None) -> Iterator[tuple[int, int]]:
    """Consecutive steps of the same batch size as (number of steps, size), at most ``longest`` of them at a time."""
    for size, group in itertools.groupby(sizes):
        steps = len(list(group))
        each = longest or steps
        for first in range(0, steps, each):
            yield min(each, steps - first), size
