"""``fast``: a compiled loop runs any number of steps.

The dataset is on the device, and state is donated.

The host sends the order of the examples and reads the results of all steps at the end. A last batch
of another size has a separate loop. On a CPU, XLA runs convolutions inside a loop on one thread, so
there a network with convolutions runs one compiled step at a time, called from Python.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import SingleDeviceSharding
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan, Job, Steps
from trainmark.backends.engines import jax as engines
from trainmark.backends.jax.network import Attend
from trainmark.backends.jax.pixels import augment, distort, not_augmented
from trainmark.backends.jax.trainer import JaxTrainer, Training
from trainmark.workload.layers import Attention
from trainmark.workload.model import LayerPlan
from trainmark.workload.tokens import Tokens


class JaxFastTrainer(JaxTrainer):
    """Trainer with all data on the device.

    Args:
        data: sharding of images and labels; by default the same as of everything else.
        order: sharding of the order of the examples.
    """

    def __init__(
        self, job: Job, device: Any, place: Any = None, data: Any = None, order: Any = None
    ) -> None:
        super().__init__(job, device, place)
        self._order_place = order or SingleDeviceSharding(device)
        self._augmented = job.workload.augmented_input
        self._longest = 1 if device.platform == "cpu" and job.model.convolves else None
        self._images, self._labels = jax.device_put(self._training_set(), data or device)
        self._loop = jax.jit(self._spread(self._looped), donate_argnums=0)
        self._compiled: dict[int, tuple[int, Any]] = {}
        self._plan = EpochPlan((), None)
        self._order: NDArray[np.int32] | None = None
        self._steps_of_epoch = self._examples_of_epoch = 0

    def compile(self, plan: EpochPlan) -> bool:
        """Compile the loops of an epoch like ``plan``."""
        for size, count in Counter(plan.sizes).items():
            self._program(0 if plan.whole and self._augmented is None else size, count)
        return True

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Draw an order if none is given; for augmented images, it comes with their draws."""
        order = self._order_of(plan)
        if self._augmented is not None:
            if order is None:
                order = np.resize(np.arange(len(self._data.train)), sum(plan.sizes))
            order = order[: sum(plan.sizes)]  # whole passes are drawn, also for a shorter epoch
            draws = np.resize(not_augmented(self._augmented), (len(order), 5))
            order = np.column_stack([order, draws if plan.augmented is None else plan.augmented])
        self._plan = plan
        self._order = None if order is None else order.astype(np.int32)
        self._steps_of_epoch = self._examples_of_epoch = 0

    def train(self, steps: int, tick: Callable[[], None]) -> list[tuple[Array, int]]:
        """Queue steps, one loop per run of equal batch sizes; results stay on the device."""
        first = self._steps_of_epoch
        results = []
        for size, same in itertools.groupby(self._plan.sizes[first : first + steps]):
            left = len(list(same))
            longest, program = self._program(0 if self._order is None else size, left)
            while left:
                count = min(left, longest)
                order = np.zeros(
                    self._order_shape(longest, 0 if self._order is None else size), np.int32
                )
                if self._order is not None:
                    used = slice(self._examples_of_epoch, self._examples_of_epoch + count * size)
                    order[:count] = self._order[used].reshape(count, *order.shape[1:])
                taken = jax.device_put(order, self._order_place), self._put(np.int32(count))
                self._training, rows = program(
                    self._training, self._images, self._labels, *taken, self._key
                )
                results.append((rows, count))
                self._examples_of_epoch += count * size
                left -= count
                for _ in range(count):
                    tick()
        self._steps_of_epoch += steps
        return results

    def read(self, results: Any) -> Steps:
        """Read the rows of the trained steps."""
        return super().read([self._on_host(rows)[:count] for rows, count in results])

    def _on_host(self, rows: Array) -> NDArray[np.float64]:
        """Return the results of a loop, ``[steps, 3]``."""
        return np.asarray(rows, np.float64)

    def _program(self, size: int, steps: int) -> tuple[int, Any]:
        """Return the compiled loop over batches of ``size`` and its maximum number of steps.

        Size 0 is the whole set.

        It is compiled for ``steps`` at first use, and then runs any number up to that.
        """
        if size not in self._compiled:
            longest = self._longest or steps
            order = jax.ShapeDtypeStruct(
                self._order_shape(longest, size), np.int32, sharding=self._order_place
            )
            count = self._put(np.int32(0))
            lowered = self._loop.lower(
                self._training, self._images, self._labels, order, count, self._key
            )
            self._compiled[size] = longest, lowered.compile()
        return self._compiled[size]

    def _order_shape(self, steps: int, size: int) -> tuple[int, ...]:
        return (steps, size) if self._augmented is None else (steps, size, 6)

    def _training_set(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the tokens of a text and the next tokens; windows are gathered on the device."""
        tokens = self._data.train.tokens
        if tokens is None:
            return super()._training_set()
        return tokens[:-1].astype(np.int32), tokens[1:].astype(np.int32)

    def _looped(
        self,
        training: Training,
        images: Array,
        labels: Array,
        order: Array,
        count: Array,
        key: Array,
    ) -> tuple[Training, Array]:
        for_dropout, for_pixels = jax.random.split(key)

        def step(training: Training, indices: Array) -> tuple[Training, Array]:
            x, y = self._batch(
                images, labels, indices, jax.random.fold_in(for_pixels, training.step)
            )
            training, row = self._learn(training, x, y, for_dropout)
            return (training if self._optimizer else self._unsettled(training)), row

        def one(index: Array, carry: tuple[Training, Array]) -> tuple[Training, Array]:
            training, rows = carry
            training, row = step(training, order[index])
            return training, rows.at[index].set(row)

        if len(order) == 1:  # no loop, not even of a single step
            training, row = step(training, order[0])
            return training, row[None]
        row = jax.eval_shape(step, training, order[0])[1]
        return lax.fori_loop(
            0, count, one, (training, jnp.zeros((len(order), *row.shape), row.dtype))
        )

    def _batch(
        self, images: Array, labels: Array, indices: Array, key: Array
    ) -> tuple[Array, Array]:
        """Return input and labels of a step; ``key`` is for distortions."""
        spec = self._workload.input
        draws = indices
        held = "input" in self._job.options.without
        if isinstance(spec, Tokens):
            if indices.size and not held:
                starts = indices
            else:
                starts = jnp.arange(indices.size or len(self._data.train))
            indices = starts[:, None] + jnp.arange(spec.length)
            held = False
        elif spec.augment is not None:
            indices = indices[:, 0]
        if not indices.size:
            x = images
            y = labels
        elif held:
            x, y = (
                each[: indices.size].reshape(*indices.shape, *each.shape[1:])
                for each in (images, labels)
            )
        else:
            x = _rows(images, indices)
            y = _rows(labels, indices)
        if isinstance(spec, Tokens):
            return x, y
        if spec.augment is not None:
            x = augment(spec, x, draws[:, 1:])
        return distort(spec, x, key, self._dtype) if spec.distortions else x, y

    def _spread(self, looped: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``looped`` for all devices; here there is only one."""
        return looped

    def _attend(self, factors: Any) -> Attend | None:
        """Return cuDNN's attention where it supports the shapes.

        Elsewhere, the plain formula is fastest.
        """
        if self._device.platform != "gpu" or factors != jnp.bfloat16:
            return None
        fused = functools.partial(
            jax.nn.dot_product_attention, is_causal=True, implementation="cudnn"
        )
        return fused if all(_accepts(fused, plan) for plan in self._model.every_layer) else None

    def _unsettled(self, training: Training) -> Training:
        name = self._model.trained[0]
        kernel = engines.unsettled(training.weights[name], training.step)
        return training._replace(weights={**training.weights, name: kernel})


def _accepts(attend: Attend, plan: LayerPlan) -> bool:
    """Whether ``attend`` supports the shapes of a layer; true for layers without attention."""
    if not isinstance(plan.layer, Attention):
        return True
    length, width = plan.input_shape
    q = jax.ShapeDtypeStruct((1, length, plan.layer.heads, width // plan.layer.heads), jnp.bfloat16)
    try:
        jax.eval_shape(attend, q, q, q)
    except (NotImplementedError, RuntimeError, ValueError):
        return False  # Its checks of shapes, cuDNN and the GPU raise these.
    return True


def _rows(array: Array, indices: Array) -> Array:
    """Gather rows without bounds checks."""
    return array.at[indices].get(mode="promise_in_bounds")
