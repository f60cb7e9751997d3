"""``fast``: the dataset lives on the device and many steps are queued at once, by a loop of the engine's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from keras import ops

from trainmark.backends.base import EpochPlan, Options, Steps
from trainmark.backends.keras.engine import Engine
from trainmark.backends.keras.pixels import Distort
from trainmark.backends.keras.trainer import KerasTrainer
from trainmark.data.dataset import Dataset
from trainmark.workload.layers import Conv2D
from trainmark.workload.model import Model
from trainmark.workload.pixels import prepare
from trainmark.workload.rewrite import pool_first
from trainmark.workload.spec import Workload

LOSS, L2_LOSS, HITS = range(3)  # columns of the results of steps
_MOST_STEPS = 200  # queued at once, so that the steps of a long epoch can be counted as they go


class FastTrainer(KerasTrainer):
    """Everything resident. An engine adds how it runs steps: :meth:`_run`."""

    def __init__(self, workload: Workload, model: Model, data: Dataset, options: Options, engine: Engine) -> None:
        super().__init__(workload, pool_first(model), data, options, engine)
        images = data.train.images
        self._distort: Distort | None = None
        if workload.input.distortions is None:
            images = prepare(workload.input, images, self._dtype)
        else:
            self._distort = Distort(workload.input, self._seed)
        self._images = ops.convert_to_tensor(images)
        self._train_labels = ops.convert_to_tensor(self._labels["train"])
        self._rng = np.random.default_rng([options.seed, 1])
        self._held, self._updates = "input" in options.without, "optimizer" not in options.without
        # XLA has a library for convolutions on the CPU, but not within a loop (measured: 5 to 20 times slower).
        self._slow_in_loops = options.device == "cpu" and any(isinstance(layer, Conv2D) for layer in workload.model)
        self._capacity = (0, 0)
        self._rows: Any = None

    def compile(self, plan: EpochPlan) -> bool:
        """Make one step of each batch size, and put everything back."""
        drawn = self._rng.bit_generator.state
        self.begin_epoch(plan)
        self._rng.bit_generator.state = drawn
        with self._put_back():
            for size in dict.fromkeys(plan.sizes):
                self._rows = self._run(size, 0, 1, 0, self._rows, lambda: None)
        return True

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Send the order of the epoch to the device, with room for its results.

        Both keep the size of the longest epoch so far, so that a shorter one compiles nothing new.
        """
        self._plan, self._step, self._example = plan, 0, 0
        most_steps, most_examples = self._capacity
        self._capacity = max(most_steps, len(plan.sizes)), max(most_examples, 0 if plan.whole else sum(plan.sizes))
        order = np.zeros(self._capacity[1], np.int32)
        if not plan.whole:
            order[: sum(plan.sizes)] = self._draw(plan) if plan.order is None else plan.order[: sum(plan.sizes)]
        self._order = ops.convert_to_tensor(order)
        self._rows = ops.zeros((self._capacity[0], 3), self._dtype.name)

    def train(self, steps: int, tick: Callable[[], None]) -> Any:
        """Queue steps, as many of the same size at once as there are; results stay on the device."""
        first = self._step
        for size, same in itertools.groupby(self._plan.sizes[first : first + steps]):
            left = len(list(same))
            while left:
                count = min(left, _MOST_STEPS)
                self._rows = self._run(size, self._step, count, self._example, self._rows, tick)
                self._step += count
                self._example += count * size
                left -= count
        return self._rows[first : self._step]

    def read(self, results: Any) -> Steps:
        """Results ``[steps, 3]`` to the host."""
        host = np.array(ops.convert_to_numpy(results), dtype=np.float64)
        l2_losses = host[:, L2_LOSS] if self._network.has_l2 else None
        return Steps(host[:, LOSS], l2_losses, host[:, HITS].astype(np.int64))

    def _run(self, size: int, step: int, count: int, example: int, rows: Any, tick: Callable[[], None]) -> Any:
        """Queue ``count`` steps of ``size`` examples.

        Args:
            step: number of the first in the epoch.
            example: place in the epoch of its first example.
            rows: the results so far, ``[capacity, 3]``.

        Returns:
            Those results with the new ones.
        """
        raise NotImplementedError

    def _variables(self) -> list[Any]:
        return [*super()._variables(), *(self._distort.variables if self._distort else ())]

    def _batch_loss(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Total loss of one batch, and its row of results: loss, L2 loss, hits."""
        outputs = self._network(x if self._distort is None else self._distort(x), training=True)
        loss = self._network.loss(y, outputs)
        l2_loss = self._network.l2_loss() if self._network.has_l2 else ops.zeros_like(loss)
        total = loss + l2_loss
        hits = ops.sum(ops.cast(ops.equal(ops.argmax(outputs, axis=1), ops.cast(y, "int32")), loss.dtype))
        return total, ops.stack([total, l2_loss, hits])

    def _draw(self, plan: EpochPlan) -> Any:
        count = len(self._labels["train"])
        one_pass = sum(self._workload.batches.sizes(count))
        passes = -(-sum(plan.sizes) // one_pass)
        return np.concatenate([self._rng.permutation(count)[:one_pass] for _ in range(passes)])[: sum(plan.sizes)]
