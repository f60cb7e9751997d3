"""Code shared by the styles: the network, its weights, evaluation, and reading results."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable, Iterator
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from trainmark.backends.base import Evaluation, Job, SplitName
from trainmark.backends.keras import losses, network, optimizers
from trainmark.backends.keras.batches import Batch, OrderedBatches
from trainmark.backends.keras.engine import Engine
from trainmark.backends.keras.precision import ARITHMETIC
from trainmark.backends.parts import loss_left
from trainmark.backends.stepwise import Arrays, State
from trainmark.errors import Unsupported
from trainmark.workload.losses import sums
from trainmark.workload.model import Weights
from trainmark.workload.pixels import prepare


class KerasTrainer:
    """The style-independent part of a trainer.

    It sets the seed and the precision of Keras for the whole process, before it builds the network.
    """

    def __init__(self, job: Job, engine: Engine) -> None:
        workload = job.workload
        data = job.data
        options = job.options
        # Like keras.utils.set_random_seed, which however imports TensorFlow even with another
        # engine.
        self._seed = seed_of(options.seed)
        random.seed(self._seed)
        np.random.seed(self._seed)
        engine.reseed(self._seed)
        floats = ARITHMETIC[options.precision].floatx
        keras.config.set_floatx(floats)
        keras.config.set_dtype_policy(floats)
        self._job = job
        self._workload = workload
        self._model = job.model
        self._data = data
        self._engine = engine
        self._dtype = np.dtype(keras.config.floatx())
        self._labels: dict[SplitName, NDArray[Any]] = {
            "train": data.train.labels,
            "test": data.test.labels,
        }
        if not workload.is_text:  # windows of a text stay views
            self._labels = {
                split: labels.astype(np.int32) for split, labels in self._labels.items()
            }
        self._kept: dict[SplitName, NDArray[Any]] = {}
        trained_loss = loss_left(workload, options)
        self._network = network.build(job.model, sums_loss=sums(trained_loss))
        self._weights = network.weights(self._network, job.model)
        keys = {id(variable): key for key, variable in self._weights.items()}
        self._trained = [keys[id(variable)] for variable in self._network.trainable_variables]
        is_still = "optimizer" in options.without
        spec = workload.optimizer
        average = workload.weight_average
        self._optimizer = (
            optimizers.Still() if is_still else optimizers.build(spec, average, self._trained)
        )
        if is_still or options.keeps_gradients:
            self._optimizer = optimizers.keeping_gradients(self._optimizer)
        self._network.compile(
            optimizer=self._optimizer,
            loss=losses.build(trained_loss),
            metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
            jit_compile=True if options.style == "compiled" else "auto",
        )
        if options.style == "compiled" and not self._network.jit_compile:
            raise Unsupported(
                "Keras can't compile this network here", fix="Use --style idiomatic or fast."
            )
        self._optimizer.build(self._network.trainable_variables)

    def load(self, weights: Weights) -> None:
        """Set weights and reset the optimiser, in place, so that compiled steps stay valid."""
        self._assign(self._weights.values(), weights, self._weights)
        optimizers.reset(self._optimizer, self._network.trainable_variables)

    def weights(self) -> Weights:
        """Return a copy of the weights on the host."""
        values = (
            (key, ops.convert_to_numpy(variable.value)) for key, variable in self._weights.items()
        )
        return {key: np.array(value, dtype=np.float32) for key, value in values}

    def averaged(self) -> Weights:
        """Return a copy of their average on the host, or of the weights if there is none."""
        with self._average_in_place():
            return self.weights()

    def synchronize(self) -> None:
        """Wait for the device."""
        # Inside ``fit``, Keras on JAX holds the values elsewhere.
        synchronize_state = getattr(self._network, "jax_state_sync", None)
        if synchronize_state is not None:
            synchronize_state()
        self._engine.synchronize([variable.value for variable in self._variables()])

    def evaluate(self, split: SplitName, examples: NDArray[np.int64] | None = None) -> Evaluation:
        """Run ``model.evaluate`` on a split, with the averaged weights if there is an average."""
        chosen: Any = slice(None) if examples is None else examples
        given: Any
        if self._workload.is_text:
            given = (self._windows(split, chosen),)
            batch = None
        else:
            given = self._batch(split, chosen)
            batch = self._workload.evaluation_batch
        with self._average_in_place():
            found = self._network.evaluate(*given, batch_size=batch, verbose=0, return_dict=True)
        predictions = self._labels[split][chosen].size
        hits = round(float(found["accuracy"]) * predictions)  # Keras reports the share in float32
        return Evaluation(float(found["loss"]), hits / predictions)

    def outputs(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the outputs of the last layer, without dropout."""
        outputs = self._network.predict_on_batch(self._ready(images))
        return np.asarray(outputs, dtype=np.float64)

    def set_state(self, state: State) -> None:
        """Set weights, optimiser and average, in place."""
        self.load(dict(state.weights))
        slots = optimizers.slots(self._optimizer, self._workload.optimizer)
        for slot, (variables, scale) in slots.items():
            values = {name: value / scale for name, value in state.slots[slot].items()}
            self._assign(variables, values)
        if state.average:
            self._assign(optimizers.averages(self._optimizer), state.average)
        self._optimizer.iterations.assign(state.step)

    def state(self) -> State:
        """Copy weights, optimiser and average to the host."""
        found = optimizers.slots(self._optimizer, self._workload.optimizer)
        slots = {
            slot: {name: value * scale for name, value in self._copied(variables).items()}
            for slot, (variables, scale) in found.items()
        }
        average = self._copied(optimizers.averages(self._optimizer))
        weights = self._copied(self._weights.values(), self._weights)
        step = int(ops.convert_to_numpy(self._optimizer.iterations.value))
        return State(weights, slots, average, step)

    def gradients(self) -> Arrays:
        """Copy the gradients of the last step to the host."""
        return self._copied(self._optimizer.kept)

    def activations(self, examples: NDArray[np.int64], *, training: bool) -> Arrays:
        """Run the layers on training examples, and leave running averages."""
        x = ops.convert_to_tensor(self._training_inputs(examples))
        running = [
            (each, ops.copy(each.value))
            for key, each in self._weights.items()
            if key not in self._trained
        ]
        outputs = {"input": x, **dict(network.outputs(self._network.layers, x, training=training))}
        for variable, value in running:
            variable.assign(value)
        return {
            name: ops.convert_to_numpy(value).astype(np.float64) for name, value in outputs.items()
        }

    def _training_inputs(self, examples: NDArray[np.int64]) -> NDArray[Any]:
        """Return training examples as network input."""
        return self._batch("train", examples)[0]

    def _copied(self, variables: Iterable[Any], keys: Iterable[str] | None = None) -> Arrays:
        """Copy variables to the host, by default those of each trained weight."""
        values = (
            np.array(ops.convert_to_numpy(variable.value), np.float64) for variable in variables
        )
        return dict(zip(self._trained if keys is None else keys, values, strict=False))

    def _assign(
        self, variables: Iterable[Any], arrays: Arrays, keys: Iterable[str] | None = None
    ) -> None:
        for key, variable in zip(self._trained if keys is None else keys, variables, strict=True):
            variable.assign(arrays[key])

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
        images = getattr(self._data, split).images
        return images if self._workload.is_text else self._ready(images)

    def _ready(self, images: NDArray[Any]) -> NDArray[Any]:
        x = prepare(self._workload.input, images, self._dtype)
        return x.astype(np.int32) if self._workload.is_text else x

    def _batch(self, split: SplitName, examples: Any) -> Batch:
        """Return the examples at these indices, as network input, and their labels."""
        x = self._inputs(split)[examples]
        y = self._labels[split][examples]
        return (x.astype(np.int32), y.astype(np.int32)) if self._workload.is_text else (x, y)

    def _windows(self, split: SplitName, examples: Any) -> OrderedBatches:
        """Return windows of a text in batches of the workload's size."""
        chosen = np.arange(len(self._labels[split]))[examples]
        edges = range(0, len(chosen), self._workload.evaluation_batch)

        def batch(taken: Any, _: int) -> Batch:
            return self._batch(split, taken)

        return OrderedBatches(batch, [chosen[edge : edge + edges.step] for edge in edges])

    @contextlib.contextmanager
    def _average_in_place(self) -> Iterator[None]:
        """Use the average, if there is one, instead of the weights."""
        average = optimizers.averages(self._optimizer)
        if not average:
            yield
            return
        trained = self._copied(self._network.trainable_variables)
        self._assign(self._network.trainable_variables, self._copied(average))
        try:
            yield
        finally:
            self._assign(self._network.trainable_variables, trained)

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
