"""``idiomatic``: the Module of MXNet's tutorials, with its ``NDArrayIter`` and its ``fit``.

``fit`` runs once per requested stretch of steps, which is an epoch unless steps are logged.
"""

from __future__ import annotations

import itertools
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping

import mxnet as mx
import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan, Options
from trainmark.data.dataset import Dataset
from trainmark.workload.model import Model, Weights
from trainmark.workload.spec import Workload
from trainmark_mxnet import losses, network
from trainmark_mxnet.batches import Epochs, Stretch
from trainmark_mxnet.trainer import Arrays, MxnetTrainer


class IdiomaticTrainer(MxnetTrainer):
    """One batch at a time from an iterator."""

    def __init__(self, workload: Workload, model: Model, data: Dataset, options: Options) -> None:
        super().__init__(workload, model, data, options)
        self._epochs = Epochs(workload, *self._training_set(mx.cpu()), self._context, options.seed)
        self._batches: Iterator[mx.io.DataBatch] = iter(())
        quiet = logging.getLogger(__name__)
        quiet.setLevel(logging.ERROR)  # else each fit warns that the module is already bound
        self._module = mx.mod.Module(self._symbol, context=self._context, logger=quiet)
        batch = (*workload.batches.sizes(len(data.train)), 1)[0]
        self._module.bind(*self._described(batch))
        if "optimizer" in self._without:
            self._module.update = lambda: None

    def load(self, weights: Weights) -> None:
        """Set weights and a new optimiser."""
        super().load(weights)
        batch = self._module.data_shapes[0].shape[0]
        self._module.init_optimizer(kvstore=None, optimizer=self._optimizer(batch), force_init=True)
        self._updater = self._module._updater

    def compile(self, plan: EpochPlan) -> bool:
        """Return False: nothing is compiled. Puts a set with a fixed order in that order, as a
        loader would."""
        self._epochs.prepare(plan)
        return False

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Prepare the batches."""
        batches = self._epochs.batches(plan)
        self._batches = itertools.repeat(next(batches)) if "input" in self._without else batches

    def train(self, steps: int, tick: Callable[[], None]) -> mx.nd.NDArray:
        """Run ``fit`` on the next steps; results stay on the device."""
        rows = Rows()

        def after_batch(_: object) -> None:
            if "optimizer" not in self._without:
                self._follow()
            tick()

        stretch = Stretch(self._batches, steps, self._described(1), self._divide_by)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Parameters already initialized")
            self._module.fit(
                stretch, eval_metric=rows, batch_end_callback=after_batch, kvstore=None, num_epoch=1
            )
        return mx.nd.stack(*rows.kept)

    def _parameters(self) -> Arrays:
        # The arrays that training changes; the module's get_params waits for all queued steps, and
        # copies.
        return self._named(self._module._exec_group.param_arrays)

    def _sums(self) -> Arrays:
        return self._named(self._module._exec_group.grad_arrays)

    def _named(self, arrays: list[list[mx.nd.NDArray]]) -> Arrays:
        return {name: first for name, (first,) in zip(self._names, arrays, strict=True)}

    def _set_parameters(self, values: Mapping[str, NDArray[np.float32]]) -> None:
        arrays = {name: mx.nd.array(value, dtype=self._dtype) for name, value in values.items()}
        self._module.init_params(arg_params=arrays, aux_params={}, force_init=True)

    def _described(self, batch: int) -> tuple[list[mx.io.DataDesc], list[mx.io.DataDesc]]:
        height, width, channels = self._model.input_shape
        return (
            [mx.io.DataDesc(network.DATA, (batch, channels, height, width), self._dtype)],
            [mx.io.DataDesc(network.LABEL, (batch,), self._dtype)],
        )


class Rows(mx.metric.EvalMetric):
    """Keeps the results of each step on the device; MXNet's metrics fetch the outputs of every
    batch."""

    def __init__(self) -> None:
        self.kept: list[mx.nd.NDArray] = []
        super().__init__("rows")

    def update(self, labels: list[mx.nd.NDArray], preds: list[mx.nd.NDArray]) -> None:  # noqa: ARG002
        """Keep the results of a step; ``fit`` calls this after each."""
        self.kept.append(preds[losses.ROW].copy())  # the next step overwrites it
