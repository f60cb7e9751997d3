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
from trainmark.backends.stepwise import Arrays as HostArrays
from trainmark.backends.stepwise import State
from trainmark.data.dataset import Dataset
from trainmark.workload.model import Model, Weights
from trainmark.workload.optimizers import slots_of
from trainmark.workload.pixels import Input
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
            # MXNet has no setting for it; read on first use of CUDA
            os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
        self._context = mx.gpu(int(index)) if kind == "cuda" else mx.cpu()
        assert isinstance(workload.input, Input), "texts are refused"
        self._input = workload.input
        self._workload = workload
        self._model = model
        self._data = data
        self._dtype = np.dtype(DTYPES[options.precision]).type
        self._without = options.without
        self._keeps_gradients = options.keeps_gradients
        mx.random.seed(options.seed % _LARGEST_SEED)
        self._outputs = network.build(model.layers)
        self._symbol = losses.training(loss_left(workload, options), model, self._outputs)
        self._names = [
            name
            for name in self._symbol.list_arguments()
            if name not in (network.DATA, network.LABEL)
        ]
        self._updater: mx.optimizer.Updater
        self._average: Arrays = {}
        self._before: Arrays = {}
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
        l2_losses = (
            host[:, losses.L2_LOSS]
            if any(plan.l2 for plan in self._model.weighted_layers)
            else None
        )
        return Steps(host[:, losses.LOSS], l2_losses, host[:, losses.HITS].astype(np.int64))

    def evaluate(self, split: SplitName, examples: Any = None) -> Evaluation:
        """Evaluate a split in large batches, with the averaged weights if there is an average."""
        part = getattr(self._data, split)
        chosen = np.arange(len(part.labels)) if examples is None else examples
        symbol = losses.evaluation(self._workload.loss, self._outputs)
        parameters = self._average if self._workload.weight_average else self._parameters()
        loss = 0.0
        hits = 0
        for start in range(0, len(chosen), EVALUATION_BATCH):
            batch = chosen[start : start + EVALUATION_BATCH]
            labels = {network.LABEL: self._numbers(part.labels[batch], self._context)}
            found = self._run(
                symbol, {**parameters, **self._prepared(part.images[batch]), **labels}
            )
            loss += float(found[0].asscalar())
            hits += int(found[1].asscalar())
        return Evaluation(loss / len(chosen), hits / len(chosen))

    def outputs(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the outputs of the last layer, without dropout."""
        found: NDArray[np.float64] = self._run(
            self._outputs, {**self._parameters(), **self._prepared(images)}
        )[0].asnumpy()
        return found.astype(np.float64)

    def set_state(self, state: State) -> None:
        """Set weights, optimiser and average."""
        self.load(dict(state.weights))
        for slot, arrays in state.slots.items():
            self._write(arrays, *self._slot(slot))
        if state.average:
            self._write(state.average, self._average)
        optimizer = self._updater.optimizer
        self._step = optimizer.num_update = optimizer.begin_num_update = state.step

    def state(self) -> State:
        """Copy weights, optimiser and average to the host."""
        slots = {slot: self._read(*self._slot(slot)) for slot in slots_of(self._workload.optimizer)}
        average = self._read(self._average) if self._average else {}
        return State(
            self._read(self._parameters()), slots, average, self._updater.optimizer.num_update
        )

    def gradients(self) -> HostArrays:
        """Copy the gradients of the last step to the host; the L2 terms are added and rounded as in
        the update."""
        share = self._updater.optimizer.rescale_grad
        l2 = {network.kernel(p): p.l2 for p in self._model.weighted_layers}
        sums = self._sums()
        before = self._before
        return self._read(
            {name: sums[name] * share + before[name] * l2.get(name, 0.0) for name in self._names}
        )

    def activations(self, examples: NDArray[np.int64], *, training: bool) -> HostArrays:
        """Run the layers on training examples."""
        # One graph per layer: in one for all, MXNet fuses dense layers with their ReLU and returns
        # wrong ReLU outputs.
        outputs = [*self._prepared(self._data.train.images[examples]).values()]
        for plan in self._model.layers:
            arrays = {**self._parameters(), network.DATA: outputs[-1]}
            outputs += self._run(network.build([plan]), arrays, training=training)
        x = outputs.pop(0).asnumpy().transpose(0, 2, 3, 1).astype(np.float64)
        return {"input": x, **network.outputs_from_mxnet(self._model, outputs)}

    def settings(self) -> dict[str, Any]:
        """Return the settings that affect speed or arithmetic; most are environment variables that
        MXNet reads."""
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

    def _sums(self) -> Arrays:
        """Return the gradients of the last step, summed over the batch, on the device."""
        raise NotImplementedError

    def _slot(self, name: str) -> tuple[Arrays, float]:
        """Return MXNet's arrays for a slot, and the slot as a multiple of them."""
        scale = optimizers.scale_of(self._workload.optimizer, self._updater.optimizer)
        return optimizers.slot_arrays(self._updater, name, self._parameters()), scale

    def _write(self, values: HostArrays, arrays: Arrays, scale: float = 1.0) -> None:
        for name, value in network.to_mxnet(self._model, values).items():
            arrays[name][:] = value / scale

    def _read(self, arrays: Arrays, scale: float = 1.0) -> dict[str, NDArray[np.float64]]:
        found = network.from_mxnet(self._model, arrays, np.float64)
        return {name: value * scale for name, value in found.items()}

    def _optimizer(self, batch: int) -> mx.optimizer.Optimizer:
        return optimizers.build(
            self._workload.optimizer,
            self._model,
            self._names,
            batch=batch,
            float64=self._dtype == np.float64,
        )

    def _divide_by(self, size: int) -> None:
        """Set the batch size of the next update's mean, since the last batch of a pass may be
        smaller.

        The weights before it are kept for the gradients of the L2 terms.
        """
        self._updater.optimizer.rescale_grad = 1 / size
        if self._keeps_gradients:
            self._before = {name: array.copy() for name, array in self._parameters().items()}

    def _follow(self) -> None:
        """Count an update, and update the average."""
        if self._workload.weight_average:
            decay = self._workload.weight_average.decay_at(self._step)
            for name, array in self._parameters().items():
                self._average[name][:] = self._average[name] * decay + array * (1 - decay)
        self._step += 1

    def _prepared(self, images: NDArray[np.uint8]) -> dict[str, mx.nd.NDArray]:
        return {network.DATA: pixels.prepared(self._input, images, self._dtype, self._context)}

    def _training_set(self, context: mx.Context) -> tuple[mx.nd.NDArray, mx.nd.NDArray]:
        """Return images for storage, and labels."""
        split = self._data.train
        images = pixels.stored(self._input, split.images, self._dtype, context)
        return images, self._numbers(split.labels, context)

    def _numbers(self, labels: NDArray[np.uint8], context: mx.Context) -> mx.nd.NDArray:
        """Return labels in the type of the network, as MXNet's losses require."""
        return mx.nd.array(labels, ctx=context, dtype=self._dtype)

    def _run(
        self, symbol: mx.sym.Symbol, arrays: Arrays, *, training: bool = False
    ) -> list[mx.nd.NDArray]:
        """Run one forward pass, by default as in prediction."""
        arguments = {name: arrays[name] for name in symbol.list_arguments()}
        executor = symbol.bind(self._context, arguments, grad_req="null")
        found: list[mx.nd.NDArray] = executor.forward(is_train=training)
        return found
