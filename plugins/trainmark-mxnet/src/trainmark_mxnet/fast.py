"""``fast``: the dataset stays on the device; a step is one bound graph and one call of MXNet's
updater.

It uses an executor bound to fixed arrays rather than a hybridised Gluon block, since it was faster
on the CPU: it does not record operations for the gradients. ``recipes/mxnet_fast.py`` shows the
loop without trainmark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import mxnet as mx
import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan, Options
from trainmark.data.dataset import Dataset
from trainmark.workload.model import Model, Weights
from trainmark.workload.spec import Workload
from trainmark_mxnet import losses, network, pixels
from trainmark_mxnet.trainer import Arrays, MxnetTrainer


class FastTrainer(MxnetTrainer):
    """Trainer with all data on the device."""

    def __init__(self, workload: Workload, model: Model, data: Dataset, options: Options) -> None:
        super().__init__(workload, model, data, options)
        self._images, self._labels = self._training_set(self._context)
        shapes, _, _ = self._symbol.infer_shape(**self._input_shapes(1))
        shape_of = dict(zip(self._symbol.list_arguments(), shapes, strict=True))
        self._weights = {
            name: mx.nd.zeros(shape_of[name], self._context, self._dtype) for name in self._names
        }
        self._gradients = {name: mx.nd.zeros_like(weight) for name, weight in self._weights.items()}
        self._executors: dict[tuple[int, bool], mx.executor.Executor] = {}
        self._plan = EpochPlan((), None)
        self._order = mx.nd.zeros((1,), self._context, "int32")
        self._steps_of_epoch = self._examples_of_epoch = 0

    def load(self, weights: Weights) -> None:
        """Set weights and a new optimiser."""
        super().load(weights)
        self._updater = mx.optimizer.get_updater(self._optimizer(batch=1))
        self._filled: set[int] = set()

    def compile(self, plan: EpochPlan) -> bool:
        """Bind a graph for each batch size of the plan."""
        for size in dict.fromkeys(plan.sizes):
            self._executor(size, plan.whole)
        return True

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Send the order of the epoch to the device."""
        self._plan = plan
        self._steps_of_epoch = self._examples_of_epoch = 0
        if not plan.whole:
            self._order = self._shuffled(plan) if plan.order is None else self._indices(plan.order)

    def train(self, steps: int, tick: Callable[[], None]) -> mx.nd.NDArray:
        """Queue steps; results stay on the device."""
        rows = []
        for _ in range(steps):
            size = self._plan.sizes[self._steps_of_epoch]
            executor = self._executor(size, self._plan.whole)
            if not self._plan.whole and size not in self._filled:
                self._fill(
                    executor, self._order[self._examples_of_epoch : self._examples_of_epoch + size]
                )
                if "input" in self._without:
                    self._filled.add(size)
            executor.forward(is_train=True)
            executor.backward()
            rows.append(executor.outputs[losses.ROW].copy())  # the next step overwrites it
            if "optimizer" not in self._without:
                self._divide_by(size)
                self._updater(
                    [*range(len(self._names))],
                    [*self._gradients.values()],
                    [*self._weights.values()],
                )
                self._follow()
            self._steps_of_epoch += 1
            self._examples_of_epoch += size
            tick()
        return mx.nd.stack(*rows)

    def _parameters(self) -> Arrays:
        return self._weights

    def _sums(self) -> Arrays:
        return self._gradients

    def _set_parameters(self, values: Mapping[str, NDArray[np.float32]]) -> None:
        for name, value in values.items():
            self._weights[name][:] = value

    def _executor(self, size: int, whole: bool) -> mx.executor.Executor:
        """Return the graph for batches of ``size``; all graphs share weights and gradients."""
        if (size, whole) not in self._executors:
            arrays = {network.DATA: self._images, network.LABEL: self._labels}
            if not whole:
                shapes = self._input_shapes(size).items()
                arrays = {
                    name: mx.nd.zeros(shape, self._context, self._dtype) for name, shape in shapes
                }
            self._executors[size, whole] = self._symbol.bind(
                self._context,
                {**self._weights, **arrays},
                args_grad=self._gradients,
                grad_req={**dict.fromkeys(self._names, "write"), **dict.fromkeys(arrays, "null")},
            )
        return self._executors[size, whole]

    def _fill(self, executor: mx.executor.Executor, indices: mx.nd.NDArray) -> None:
        """Gather a batch into the graph's inputs."""
        x = executor.arg_dict[network.DATA]
        y = executor.arg_dict[network.LABEL]
        mx.nd.take(self._labels, indices, out=y)
        if self._workload.input.distortions is None:
            mx.nd.take(self._images, indices, out=x)
        else:
            x[:] = pixels.distort(
                self._workload.input, mx.nd.take(self._images, indices), self._dtype
            )

    def _shuffled(self, plan: EpochPlan) -> mx.nd.NDArray:
        """Draw a new order for each pass over the dataset."""
        count = len(self._labels)
        one_pass = sum(self._workload.batches.sizes(count))
        everything = mx.nd.arange(count, ctx=self._context, dtype="int32")
        passes = [
            mx.nd.random.shuffle(everything)[:one_pass] for _ in range(0, sum(plan.sizes), one_pass)
        ]
        return mx.nd.concat(*passes, dim=0)

    def _indices(self, order: NDArray[np.int64]) -> mx.nd.NDArray:
        return mx.nd.array(order, ctx=self._context, dtype="int32")

    def _input_shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        height, width, channels = self._model.input_shape
        return {network.DATA: (size, channels, height, width), network.LABEL: (size,)}
