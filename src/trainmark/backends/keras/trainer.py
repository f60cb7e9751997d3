"""Code shared by the styles: the network, its weights, evaluation, and reading results."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from trainmark.backends.base import EVALUATION_BATCH, Evaluation, Job, SplitName
from trainmark.backends.keras import losses, network, optimizers
from trainmark.backends.keras.engine import Engine
from trainmark.backends.keras.precision import ARITHMETIC
from trainmark.backends.parts import loss_left
from trainmark.backends.stepwise import Arrays, State
from trainmark.errors import Unsupported
from trainmark.workload.model import Weights
from trainmark.workload.pixels import prepare


class KerasTrainer:
    """The style-independent part of a trainer."""

    def __init__(self, job: Job, engine: Engine) -> None:
        workload, data, options = job.workload, job.data, job.options
        # Like keras.utils.set_random_seed, which however imports TensorFlow even with another engine.
        self._seed = seed_of(options.seed)
        random.seed(self._seed)
        np.random.seed(self._seed)
        engine.reseed(self._seed)
        floats = ARITHMETIC[options.precision].floatx
        keras.config.set_floatx(floats)
        keras.config.set_dtype_policy(floats)
        self._job, self._workload, self._model, self._data = job, workload, job.model, data
        self._engine = engine
        self._dtype = np.dtype(keras.config.floatx())
        self._labels = {"train": data.train.labels.astype(np.int32), "test": data.test.labels.astype(np.int32)}
        self._kept: dict[SplitName, NDArray[Any]] = {}
        self._network = network.build(job.model)
        still = "optimizer" in options.without
        self._optimizer = optimizers.Still() if still else optimizers.build(workload.optimizer, workload.weight_average)
        if still or options.keeps_gradients:
            self._optimizer = optimizers.keeping_gradients(self._optimizer)
        self._network.compile(
            optimizer=self._optimizer,
            loss=losses.build(loss_left(workload, options)),
            metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
            jit_compile=True if options.style == "compiled" else "auto",
        )
        if options.style == "compiled" and not self._network.jit_compile:
            raise Unsupported("Keras can't compile this network here", fix="Use --style idiomatic or fast.")
        self._optimizer.build(self._network.trainable_variables)

    def load(self, weights: Weights) -> None:
        """Set weights and reset the optimiser, in place, so that compiled steps stay valid."""
        network.load_weights(self._network, self._model, weights)
        optimizers.reset(self._optimizer, self._network.trainable_variables)

    def weights(self) -> Weights:
        """Return a copy of the weights on the host."""
        return network.read_weights(self._network, self._model)

    def averaged(self) -> Weights:
        """Return a copy of their average on the host, or of the weights if there is none."""
        with self._average_in_place():
            return self.weights()

    def synchronize(self) -> None:
        """Wait for the device."""
        self._engine.synchronize([variable.value for variable in self._variables()])

    def evaluate(self, split: SplitName) -> Evaluation:
        """Run ``model.evaluate`` on a whole split, with the averaged weights if there is an average."""
        with self._average_in_place():
            found = self._network.evaluate(
                self._inputs(split), self._labels[split], EVALUATION_BATCH, verbose=0, return_dict=True
            )
        hits = round(float(found["accuracy"]) * len(self._labels[split]))  # Keras reports the share in float32
        return Evaluation(float(found["loss"]), hits / len(self._labels[split]))

    def outputs(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the outputs of the last layer, without dropout."""
        outputs = self._network.predict_on_batch(prepare(self._workload.input, images, self._dtype))
        return np.asarray(outputs, dtype=np.float64)

    def set_state(self, state: State) -> None:
        """Set weights, optimiser and average, in place."""
        self.load(dict(state.weights))
        for slot, (variables, scale) in optimizers.slots(self._optimizer, self._workload.optimizer).items():
            self._assign(variables, {name: value / scale for name, value in state.slots[slot].items()})
        if state.average:
            self._assign(optimizers.averages(self._optimizer), state.average)
        self._optimizer.iterations.assign(state.step)

    def state(self) -> State:
        """Copy weights, optimiser and average to the host."""
        slots = {
            slot: {name: value * scale for name, value in self._copied(variables).items()}
            for slot, (variables, scale) in optimizers.slots(self._optimizer, self._workload.optimizer).items()
        }
        average = self._copied(optimizers.averages(self._optimizer))
        weights = self._copied(self._network.trainable_variables)
        return State(weights, slots, average, int(ops.convert_to_numpy(self._optimizer.iterations.value)))

    def gradients(self) -> Arrays:
        """Copy the gradients of the last step to the host."""
        return self._copied(self._optimizer.kept)

    def activations(self, examples: NDArray[np.int64], *, training: bool) -> Arrays:
        """Run the layers on training examples."""
        x = ops.convert_to_tensor(self._training_inputs()[examples])
        outputs = {"input": x}
        for layer in self._network.layers:
            x = outputs[layer.name] = layer(x, training=training)
        return {name: ops.convert_to_numpy(value).astype(np.float64) for name, value in outputs.items()}

    def _training_inputs(self) -> NDArray[Any]:
        """Return the training images as network input."""
        return self._inputs("train")

    def _weight_names(self) -> Iterator[str]:
        """Yield the names of the weights in Keras's order."""
        for plan in self._model.weighted_layers:
            yield from (plan.kernel_name, plan.bias_name)

    def _copied(self, variables: list[Any]) -> Arrays:
        values = (np.array(ops.convert_to_numpy(variable.value), np.float64) for variable in variables)
        return dict(zip(self._weight_names(), values, strict=False))

    def _assign(self, variables: list[Any], arrays: Arrays) -> None:
        for name, variable in zip(self._weight_names(), variables, strict=True):
            variable.assign(arrays[name])

    def settings(self) -> dict[str, Any]:
        """Return the settings of the engine and of Keras."""
        return {
            "keras_backend": keras.config.backend(),
            "floatx": keras.config.floatx(),
            "dtype_policy": keras.config.dtype_policy().name,
            "jit_compile": bool(self._network.jit_compile),
            **self._engine.settings(),
        }

    def device_peak_bytes(self) -> int | None:
        """Return the engine's peak memory on the device."""
        return self._engine.device_peak_bytes()

    def _inputs(self, split: SplitName) -> NDArray[Any]:
        """Return the images of a split, prepared deterministically and only once."""
        if split not in self._kept:
            self._kept[split] = self._prepared(split)
        return self._kept[split]

    def _prepared(self, split: SplitName) -> NDArray[Any]:
        return prepare(self._workload.input, getattr(self._data, split).images, self._dtype)

    @contextlib.contextmanager
    def _average_in_place(self) -> Iterator[None]:
        """Use the average, if there is one, instead of the weights."""
        average = optimizers.averages(self._optimizer)
        if not average:
            yield
            return
        trained = self._network.get_weights()
        self._network.set_weights([ops.convert_to_numpy(value.value) for value in average])
        try:
            yield
        finally:
            self._network.set_weights(trained)

    @contextlib.contextmanager
    def _put_back(self) -> Iterator[None]:
        """Restore everything that a step changes."""
        before = [np.array(ops.convert_to_numpy(variable.value)) for variable in self._variables()]
        try:
            yield
        finally:
            for variable, value in zip(self._variables(), before, strict=True):
                variable.assign(value)

    def _variables(self) -> list[Any]:
        """Return everything that a step changes."""
        return [*self._network.variables, *self._optimizer.variables]


def seed_of(*parts: int) -> int:
    """Combine parts into one seed below 2^31, the limit of Keras."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0] >> 1)
