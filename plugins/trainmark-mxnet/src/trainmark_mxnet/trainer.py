"""Code shared by both styles: the network, its weights, evaluation, and reading results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import mxnet as mx
import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import Evaluation, Options, SplitName, Steps
from trainmark.backends.parts import loss_left
from trainmark.data.dataset import Dataset
from trainmark.workload.model import Model, Weights
from trainmark.workload.spec import Workload
from trainmark_mxnet import losses, network, optimizers, pixels
from trainmark_mxnet.precision import DTYPES

EVALUATION_BATCH = 1000
_LARGEST_SEED = 2**31

Arrays = Mapping[str, mx.nd.NDArray]


class MxnetTrainer:
    """The style-independent part of a trainer."""

    def __init__(self, workload: Workload, model: Model, data: Dataset, options: Options) -> None:
        kind, _, index = options.device.partition(":")
        if kind == "cuda":
            os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # MXNet has no setting for it; read on first use of CUDA
        self._context = mx.gpu(int(index)) if kind == "cuda" else mx.cpu()
        self._workload, self._model, self._data = workload, model, data
        self._dtype = np.dtype(DTYPES[options.precision]).type
        self._without = options.without
        mx.random.seed(options.seed % _LARGEST_SEED)
        self._outputs = network.build(model)
        self._symbol = losses.training(loss_left(workload, options), model, self._outputs)
        self._names = [name for name in self._symbol.list_arguments() if name not in (network.DATA, network.LABEL)]
        self._average: Arrays = {}
        self._step = 0

    def load(self, weights: Weights) -> None:
        """Set the weights; the styles also set their optimiser."""
        self._set_parameters(network.to_mxnet(self._model, weights))
        self._step = 0
        if self._workload.weight_average:
            self._average = {name: array.copy() for name, array in self._parameters().items()}

    def weights(self) -> Weights:
        """Return a copy of the weights on the host."""
        return network.from_mxnet(self._model, self._parameters())

    def averaged(self) -> Weights:
        """Return a copy of their average on the host, or of the weights if there is none."""
        return network.from_mxnet(self._model, self._average or self._parameters())

    def synchronize(self) -> None:
        """Wait for MXNet's engine, which also queues on the CPU."""
        mx.nd.waitall()

    def read(self, results: Any) -> Steps:
        """Read results ``[steps, 3]`` to the host."""
        host = results.asnumpy().astype(np.float64)
        l2_losses = host[:, losses.L2_LOSS] if any(plan.l2 for plan in self._model.weighted_layers) else None
        return Steps(host[:, losses.LOSS], l2_losses, host[:, losses.HITS].astype(np.int64))

    def evaluate(self, split: SplitName) -> Evaluation:
        """Evaluate the whole split in large batches, with the averaged weights if there is an average."""
        part = getattr(self._data, split)
        symbol = losses.evaluation(self._workload.loss, self._outputs)
        parameters = self._average if self._workload.weight_average else self._parameters()
        loss, hits = 0.0, 0
        for start in range(0, len(part.labels), EVALUATION_BATCH):
            batch = slice(start, start + EVALUATION_BATCH)
            labels = {network.LABEL: self._numbers(part.labels[batch], self._context)}
            found = self._run(symbol, {**parameters, **self._prepared(part.images[batch]), **labels})
            loss += float(found[0].asscalar())
            hits += int(found[1].asscalar())
        return Evaluation(loss / len(part.labels), hits / len(part.labels))

    def outputs(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the outputs of the last layer, without dropout."""
        found: NDArray[np.float64] = self._run(self._outputs, {**self._parameters(), **self._prepared(images)})[
            0
        ].asnumpy()
        return found.astype(np.float64)

    def settings(self) -> dict[str, Any]:
        """Return the settings that affect speed or arithmetic; most are environment variables that MXNet reads."""
        return {
            "mkldnn": mx.runtime.Features().is_enabled("MKLDNN"),
            "engine": os.environ.get("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice"),
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
            "NVIDIA_TF32_OVERRIDE": os.environ.get("NVIDIA_TF32_OVERRIDE"),
        }

    def device_peak_bytes(self) -> int | None:
        """Return None: MXNet does not report it."""
        return None

    def _parameters(self) -> Arrays:
        """Return the arrays that training changes, on the device."""
        raise NotImplementedError

    def _set_parameters(self, values: Mapping[str, NDArray[np.float32]]) -> None:
        raise NotImplementedError

    def _optimizer(self, batch: int) -> mx.optimizer.Optimizer:
        return optimizers.build(
            self._workload.optimizer, self._model, self._names, batch=batch, float64=self._dtype == np.float64
        )

    def _follow(self) -> None:
        """Count an update, and update the average."""
        if self._workload.weight_average:
            decay = self._workload.weight_average.decay_at(self._step)
            for name, array in self._parameters().items():
                self._average[name][:] = self._average[name] * decay + array * (1 - decay)
        self._step += 1

    def _prepared(self, images: NDArray[np.uint8]) -> dict[str, mx.nd.NDArray]:
        return {network.DATA: pixels.prepared(self._workload.input, images, self._dtype, self._context)}

    def _training_set(self, context: mx.Context) -> tuple[mx.nd.NDArray, mx.nd.NDArray]:
        """Return images for storage, and labels."""
        split = self._data.train
        images = pixels.stored(self._workload.input, split.images, self._dtype, context)
        return images, self._numbers(split.labels, context)

    def _numbers(self, labels: NDArray[np.uint8], context: mx.Context) -> mx.nd.NDArray:
        """Return labels in the type of the network, as MXNet's losses require."""
        return mx.nd.array(labels, ctx=context, dtype=self._dtype)

    def _run(self, symbol: mx.sym.Symbol, arrays: Arrays) -> list[mx.nd.NDArray]:
        """Run one forward pass, as in prediction."""
        arguments = {name: arrays[name] for name in symbol.list_arguments()}
        found: list[mx.nd.NDArray] = symbol.bind(self._context, arguments, grad_req="null").forward(is_train=False)
        return found
