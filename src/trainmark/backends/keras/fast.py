"""``fast``: the dataset is on the device, and the engine runs many steps per call from Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan, Job, Steps
from trainmark.backends.keras.engine import Engine
from trainmark.backends.keras.pixels import Distort
from trainmark.backends.keras.trainer import KerasTrainer

MOST_STEPS = 200  # per call, so that a long epoch shows progress


class KerasFastTrainer(KerasTrainer):
    """Keeps images and labels on the device. Subclasses define how an engine runs steps: :meth:`_run`."""

    def __init__(self, job: Job, engine: Engine) -> None:
        super().__init__(job, engine)
        if job.distorts:
            images = job.data.train.images
            stored = keras.Input(images.shape[1:], dtype=images.dtype.name)
            self._learner = keras.Sequential([stored, Distort(job.workload.input, self._seed), self._network])
        else:
            images, self._learner = self._prepared("train"), self._network
        self._images = ops.convert_to_tensor(images)
        self._train_labels = ops.convert_to_tensor(self._labels["train"])
        self._rng = np.random.default_rng([job.options.seed, 1])
        self._held, self._updates = "input" in job.options.without, "optimizer" not in job.options.without
        # XLA uses a library for convolutions on the CPU, but not within a loop (measured: 5 to 20 times slower).
        self._slow_in_loops = job.options.device == "cpu" and job.model.convolves

    def compile(self, plan: EpochPlan) -> bool:
        """Run one step of each batch size, and restore the state."""
        with self._put_back():
            for size in dict.fromkeys(plan.sizes):
                order = None if plan.whole else np.arange(size)
                self._plan, self._step, self._order = EpochPlan((size,), order, plan.whole), 0, order
                self.train(1, lambda: None)
        return True

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Start from the first batch of ``plan``."""
        self._plan, self._step = plan, 0
        self._order = plan.drawn(self._workload.batches, len(self._labels["train"]), self._rng.permutation)

    def train(self, steps: int, tick: Callable[[], None]) -> Any:
        """Queue steps, with consecutive steps of equal size in one call; results stay on the device."""
        results = []
        for size, count in self._calls(steps):
            x, y, batches = self._images, self._train_labels, None
            if self._held:
                x, y = x[:size], y[:size]
            elif self._order is not None:
                batches = np.zeros((MOST_STEPS, size), np.int32)  # a constant shape, so that nothing is recompiled
                start = sum(self._plan.sizes[: self._step])
                batches[:count] = self._order[start : start + count * size].reshape(count, size)
                batches = ops.convert_to_tensor(batches)
            results.append((self._run(x, y, batches, count, tick), count))
            self._step += count
        return results

    def read(self, results: Any) -> Steps:
        """Read results ``[steps, 3]`` to the host."""
        host = np.concatenate([ops.convert_to_numpy(rows)[:count] for rows, count in results]).astype(np.float64)
        return Steps.from_rows(host, has_l2=self._network.has_l2)

    def _run(self, x: Any, y: Any, batches: Any, count: int, tick: Callable[[], None]) -> Any:
        """Queue steps.

        Args:
            x: images on the device.
            y: their labels.
            batches: indices of the examples of each step, ``[at least count, size]``; if None, every step uses all of
                ``x`` and ``y``.
            count: number of steps.

        Returns:
            The results of the steps, ``[at least count, 3]``.
        """
        raise NotImplementedError

    def _training_inputs(self) -> NDArray[Any]:
        return ops.convert_to_numpy(self._images)

    def _variables(self) -> list[Any]:
        return [*self._learner.variables, *self._optimizer.variables]

    def _judge(self, outputs: Any, y: Any, l2_losses: list[Any]) -> tuple[Any, Any]:
        """Return the total loss of one batch, and its row of results: loss, L2 loss, hits."""
        loss = self._network.loss(y, outputs)
        l2_loss = sum(l2_losses, ops.zeros_like(loss))
        hits = ops.sum(ops.cast(ops.equal(ops.argmax(outputs, axis=1), ops.cast(y, "int32")), loss.dtype))
        return loss + l2_loss, ops.stack([loss + l2_loss, l2_loss, hits])

    def _calls(self, steps: int) -> Iterator[tuple[int, int]]:
        """Yield the batch size of each call, and its number of steps."""
        for size, same in itertools.groupby(self._plan.sizes[self._step : self._step + steps]):
            left = len(list(same))
            while left:
                yield size, min(left, MOST_STEPS)
                left -= min(left, MOST_STEPS)
