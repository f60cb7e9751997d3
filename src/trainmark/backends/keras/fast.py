"""``fast``: the dataset is on the device, and the engine runs many steps per call from Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan, Job, Steps, no_tick
from trainmark.backends.keras.engine import Engine
from trainmark.backends.keras.pixels import Distort, augmented
from trainmark.backends.keras.trainer import KerasTrainer
from trainmark.workload.pixels import Input

MOST_STEPS = 600
"""Most steps per call, so that a long epoch shows progress. Calls of 200 cost 2 % more on a CPU."""


class KerasFastTrainer(KerasTrainer):
    """Keeps images and labels, or a text, on the device.

    Subclasses define how an engine runs steps: :meth:`_run`.
    """

    def __init__(self, job: Job, engine: Engine) -> None:
        super().__init__(job, engine)
        spec = job.workload.input
        if isinstance(spec, Input) and spec.distortions is not None:
            images = job.data.train.images
            stored = keras.Input(images.shape[1:], dtype=images.dtype.name)
            self._learner = keras.Sequential([stored, Distort(spec, self._seed), self._network])
        else:
            images = self._prepared("train")
            self._learner = self._network
        labels = self._labels["train"]
        tokens = job.data.train.tokens
        if tokens is not None:
            images = tokens.astype(np.int32)
            labels = labels[0].astype(np.int32)  # labels are gathered from the text
        self._images = ops.convert_to_tensor(images)
        self._train_labels = ops.convert_to_tensor(labels)
        self._rng = np.random.default_rng([job.options.seed, 1])
        self._held = "input" in job.options.without
        self._updates = "optimizer" not in job.options.without
        # XLA uses a library for convolutions on the CPU, but not within a loop (measured: 5 to 20
        # times slower).
        self._slow_in_loops = job.options.device == "cpu" and job.model.convolves

    def compile(self, plan: EpochPlan) -> bool:
        """Run one step of each batch size, and restore the state."""
        with self._put_back():
            for size in dict.fromkeys(plan.sizes):
                order = None if plan.whole else np.arange(size)
                draws = None if plan.augmented is None else plan.augmented[:size]
                self._plan = EpochPlan((size,), order, plan.whole, draws)
                self._step = 0
                self._order = order
                self.train(1, no_tick)
        return True

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Start from the first batch of ``plan``."""
        self._plan = plan
        self._step = 0
        self._order = plan.drawn(
            self._workload.batches, len(self._labels["train"]), self._rng.permutation
        )

    def train(self, steps: int, tick: Callable[[], None]) -> Any:
        """Queue steps, with consecutive steps of equal size in one call.

        Results stay on the device.
        """
        results = []
        for size, count in self._calls(steps):
            x = self._images
            y = self._train_labels
            given = {"augmented": self._plan.augmented}
            if not self._held:
                given["taken"] = self._order
            elif self._workload.is_text:
                x, y = (ops.convert_to_tensor(each) for each in self._batch("train", slice(size)))
            else:
                x = x[:size]
                y = y[:size]
            start = sum(self._plan.sizes[: self._step])
            batches = {
                name: _by_step(each[start : start + count * size], count)
                for name, each in given.items()
                if each is not None
            }
            results.append((self._run(x, y, batches, count, tick), count))
            self._step += count
        return results

    def read(self, results: Any) -> Steps:
        """Read results ``[steps, 3]`` to the host."""
        parts = [ops.convert_to_numpy(rows)[:count] for rows, count in results]
        host = np.concatenate(parts).astype(np.float64)
        return Steps.from_rows(host, has_l2=self._network.has_l2)

    def _run(self, x: Any, y: Any, batches: Any, count: int, tick: Callable[[], None]) -> Any:
        """Queue steps.

        Args:
            x: images on the device, or a text.
            y: their labels.
            batches: for each step, ``[at least count, size, ...]``: the indices ``taken`` of its
                examples, without which it uses all of ``x`` and ``y``, and how they are
                ``augmented``.
            count: number of steps.

        Returns:
            The results of the steps, ``[at least count, 3]``.
        """
        raise NotImplementedError

    def _gathered(self, x: Any, indices: Any) -> Any:
        """Return the examples at these indices."""
        return x[indices]

    def _examples(self, x: Any, y: Any, batches: dict[str, Any], step: Any) -> tuple[Any, Any]:
        """Return the network input and labels of a step."""
        chosen = {name: each[step] for name, each in batches.items()}
        if "taken" in chosen and self._workload.is_text:
            windows = chosen["taken"][:, None] + ops.arange(
                self._workload.input.network_shape[0] + 1, dtype="int32"
            )
            tokens = ops.take(x, windows)
            return tokens[:, :-1], tokens[:, 1:]
        if "taken" in chosen:
            x = self._gathered(x, chosen["taken"])
            y = self._gathered(y, chosen["taken"])
        if "augmented" in chosen:
            spec = self._workload.input
            if isinstance(spec, Input):
                x = augmented(spec, x, chosen["augmented"])
        return x, y

    def _training_inputs(self, examples: NDArray[np.int64]) -> NDArray[Any]:
        if self._workload.is_text:
            return super()._training_inputs(examples)
        return ops.convert_to_numpy(self._images)[examples]

    def _variables(self) -> list[Any]:
        return [*self._learner.variables, *self._optimizer.variables]

    def _judge(self, outputs: Any, y: Any, l2_losses: list[Any]) -> tuple[Any, Any]:
        """Return the total loss of one batch, and its row of results: loss, L2 loss, hits."""
        loss = self._network.loss(y, outputs)
        l2_loss = sum(l2_losses, ops.zeros_like(loss))
        hits = ops.sum(
            ops.cast(ops.equal(ops.argmax(outputs, axis=-1), ops.cast(y, "int32")), loss.dtype)
        )
        return self._network.differentiated(loss, y) + l2_loss, ops.stack(
            [loss + l2_loss, l2_loss, hits]
        )

    def _calls(self, steps: int) -> Iterator[tuple[int, int]]:
        """Yield the batch size of each call, and its number of steps."""
        for size, same in itertools.groupby(self._plan.sizes[self._step : self._step + steps]):
            left = len(list(same))
            while left:
                yield size, min(left, MOST_STEPS)
                left -= min(left, MOST_STEPS)


def _by_step(values: NDArray[np.int64], count: int) -> Any:
    """Return values by step, in a constant shape, so that nothing is recompiled."""
    found = np.zeros((MOST_STEPS, len(values) // count, *values.shape[1:]), np.int32)
    found[:count] = values.reshape(count, *found.shape[1:])
    return ops.convert_to_tensor(found)
