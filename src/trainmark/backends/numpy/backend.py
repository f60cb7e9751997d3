"""The NumPy backend: one device, ``cpu``, one style, ``float32`` or ``float64``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.backends import base
from trainmark.backends.examination import LEFT, RIGHT, Examination
from trainmark.backends.numpy import layers, losses, optimizers
from trainmark.backends.numpy.peaks import NumpyPeakKernels
from trainmark.backends.numpy.precision import DTYPES
from trainmark.backends.parts import loss_left
from trainmark.backends.peaks import PeakKernels
from trainmark.backends.stepwise import Arrays, State
from trainmark.data.dataset import Dataset
from trainmark.workload.model import Model, Weights
from trainmark.workload.pixels import augment, distort, prepare
from trainmark.workload.spec import Workload
from trainmark.workload.tokens import Tokens

KINDS = base.COMMON_KINDS


class NumpyBackend:
    """The reference backend."""

    def capabilities(self) -> base.Capabilities:
        """Return full support, on the CPU."""
        devices = (base.cpu(*DTYPES),)
        return base.Capabilities(
            "numpy", np.__version__, ("idiomatic",), devices, KINDS, {"numpy": np.__version__}
        )

    def trainer(
        self, workload: Workload, model: Model, data: Dataset, options: base.Options
    ) -> NumpyTrainer:
        """Create a trainer with the whole training set prepared in memory."""
        base.require_support(self.capabilities(), workload, options)
        return NumpyTrainer(workload, model, data, options)

    def parts(self, options: base.Options) -> frozenset[base.StepPart]:  # noqa: ARG002
        """Return the parts: it gathers batches, and updates."""
        return frozenset(("input", "optimizer", "loss"))

    def peak_kernels(self, options: base.Options) -> PeakKernels:
        """Return products and copies on the CPU."""
        return NumpyPeakKernels(options)

    def examine(self) -> Examination:
        """Return that it was built for the CPU only."""
        return Examination()

    def multiply(self, device: str) -> tuple[NDArray[Any], str]:
        """Compute a small product."""
        return np.matmul(np.array(LEFT, np.float32), np.array(RIGHT, np.float32)), device


class NumpyTrainer:
    """Trains synchronously: nothing is queued, so ``synchronize`` has nothing to wait for."""

    def __init__(
        self, workload: Workload, model: Model, data: Dataset, options: base.Options
    ) -> None:
        self._workload = workload
        self._model = model
        self._data = data
        self._dtype = DTYPES[options.precision]
        self._rng = np.random.default_rng([options.seed, 1])
        self._first_random_state = self._rng.bit_generator.state
        self._without = options.without
        self._distorts = workload.input.distortions is not None
        self._loss = loss_left(workload, options)
        self._prepared = {
            "train": None if workload.input.distortions else self._ready(data.train.images),
            "test": self._ready(data.test.images),
        }
        self._weights: layers.Parameters = {}
        self._gradients: layers.Parameters = {}
        self._modules = [
            layers.build(plan, self._weights, self._gradients, self._rng) for plan in model.layers
        ]
        self._learning = self._modules[model.first_weighted :]  # nothing before it needs a gradient
        self._l2 = model.l2

    def restart(self, weights: Weights) -> None:
        """Start again from these weights, with the random numbers of a new trainer.

        The layers share the generator.
        """
        self._rng.bit_generator.state = self._first_random_state
        self.load(weights)

    def load(self, weights: Weights) -> None:
        """Set the weights and rebuild the optimiser."""
        self._weights.update({name: value.astype(self._dtype) for name, value in weights.items()})
        self._average = {name: self._weights[name].copy() for name in self._model.trained}
        self._updater = optimizers.Updater(
            self._workload.optimizer, self._weights, self._model.trained
        )

    def compile(self, plan: base.EpochPlan) -> bool:  # noqa: ARG002
        """Return False: nothing to compile."""
        return False

    def begin_epoch(self, plan: base.EpochPlan) -> None:
        """Draw an order if none is given."""
        self._order = plan.drawn(
            self._workload.batches, len(self._data.train), self._rng.permutation
        )
        self._augmented = plan.augmented
        self._edges = iter(np.cumsum([0, *plan.sizes]))
        self._start = int(next(self._edges))

    def train(self, steps: int, tick: Callable[[], None]) -> list[tuple[float, float, int]]:
        """Train on ``steps`` batches."""
        results = []
        for _ in range(steps):
            end = int(next(self._edges))
            results.append(self._train_batch(*self._batch(self._start, end)))
            self._start = end
            tick()
        return results

    def synchronize(self) -> None:
        """Do nothing: nothing is ever pending."""

    def read(self, results: Any) -> base.Steps:
        """Return the results of :meth:`train` as arrays."""
        return base.Steps.from_rows(np.array(results, dtype=np.float64), has_l2=bool(self._l2))

    def evaluate(
        self, split: base.SplitName, examples: NDArray[np.int64] | None = None
    ) -> base.Evaluation:
        """Return loss and accuracy over a split.

        It uses the averaged weights if there is an average.
        """
        trained = dict(self._weights)
        part = getattr(self._data, split)
        if self._workload.weight_average:
            self._weights.update(self._average)
        loss = 0.0
        hits = 0
        predictions = 0
        count = len(part) if examples is None else len(examples)
        for start in range(0, count, self._workload.evaluation_batch):
            some: Any = slice(start, start + self._workload.evaluation_batch)
            some = some if examples is None else examples[some]
            prepared = self._prepared[split]
            if prepared is None:
                x = prepare(self._workload.input, part.images[some], self._dtype)
            else:
                x = prepared[some]
            outputs = self._forward(x, training=False)
            labels = part.labels[some].astype(np.int64)
            each, _ = losses.loss_and_gradient(self._workload.loss, outputs, labels)
            loss += float(each.sum(dtype=np.float64))
            hits += int((outputs.argmax(axis=-1) == labels).sum())
            predictions += labels.size
        self._weights.update(trained)
        return base.Evaluation(loss / count, hits / predictions)

    def _ready(self, images: NDArray[Any]) -> NDArray[Any] | None:
        """Prepare all images; windows of a text would not fit into memory."""
        return (
            None if self._workload.is_text else prepare(self._workload.input, images, self._dtype)
        )

    def outputs(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the outputs of the last layer, without dropout."""
        x = prepare(self._workload.input, images, self._dtype)
        return self._forward(x, training=False).astype(np.float64)

    def weights(self) -> Weights:
        """Return a copy of the weights."""
        return {name: value.astype(np.float32) for name, value in self._weights.items()}

    def averaged(self) -> Weights:
        """Return a copy of their average, or of the weights if there is none."""
        kept = self._average if self._workload.weight_average else {}
        return {name: value.astype(np.float32) for name, value in {**self._weights, **kept}.items()}

    def set_state(self, state: State) -> None:
        """Set weights, optimiser and average."""
        self.load(dict(state.weights))
        self._updater.slots = {
            slot: _copied(arrays, self._dtype) for slot, arrays in state.slots.items()
        }
        self._updater.step = state.step
        if state.average:
            self._average = _copied(state.average, self._dtype)

    def state(self) -> State:
        """Copy weights, optimiser and average."""
        slots = {slot: _copied(arrays) for slot, arrays in self._updater.slots.items()}
        average = _copied(self._average) if self._workload.weight_average else {}
        return State(_copied(self._weights), slots, average, self._updater.step)

    def gradients(self) -> Arrays:
        """Copy the gradients of the last step."""
        return _copied(self._gradients)

    def activations(self, examples: NDArray[np.int64], *, training: bool) -> Arrays:
        """Run the layers on training examples, and leave running averages."""
        weights = _copied(self._weights, self._dtype)
        x = prepare(self._workload.input, self._data.train.images[examples], self._dtype)
        outputs = {
            plan.name: y
            for plan, y in layers.outputs(self._model.layers, self._modules, x, training)
        }
        self._weights.update(weights)
        return {"input": x, **outputs}

    def settings(self) -> dict[str, Any]:
        """Return the matrix library and its thread settings."""
        build = getattr(np.__config__, "CONFIG", {}).get("Build Dependencies", {}).get("blas", {})
        return {"blas": build.get("name"), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")}

    def device_peak_bytes(self) -> int | None:
        """Return None: the device is the host."""
        return None

    def _batch(self, start: int, end: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        prepared = self._prepared["train"]
        part = self._data.train
        spec = self._workload.input
        taken: Any = slice(None) if self._order is None else self._order[start:end]
        if "input" in self._without and not self._distorts:
            taken = slice(end - start)
        labels = part.labels[taken].astype(np.int64)
        if isinstance(spec, Tokens):
            return prepare(spec, part.images[taken]), labels
        if prepared is None:
            return distort(spec, part.images[taken], self._rng, self._dtype), labels
        if self._augmented is None:
            return prepared[taken], labels
        return augment(spec, prepared[taken], self._augmented[start:end]), labels

    def _train_batch(self, x: NDArray[Any], labels: NDArray[np.int64]) -> tuple[float, float, int]:
        loss, hits = self._backward(x, labels)
        l2_loss = 0.0
        for name, factor in self._l2.items():
            l2_loss += 0.5 * factor * float((self._weights[name] ** 2).sum(dtype=np.float64))
            self._gradients[name] += self._weights[name].dtype.type(factor) * self._weights[name]
        if "optimizer" in self._without:
            return loss + l2_loss, l2_loss, hits
        self._updater.update(self._weights, self._gradients)
        if self._workload.weight_average:
            decay = self._workload.weight_average.decay_at(self._updater.step - 1)
            for name, average in self._average.items():
                average += (1 - decay) * (self._weights[name] - average)
        return loss + l2_loss, l2_loss, hits

    def _backward(self, x: NDArray[Any], labels: NDArray[np.int64]) -> tuple[float, int]:
        self._gradients.clear()
        outputs = self._forward(x, training=True)
        each, gradient = losses.loss_and_gradient(self._loss, outputs, labels)
        for module in reversed(self._learning):
            gradient = module.backward(gradient)
        return float(each.mean(dtype=np.float64)), int((outputs.argmax(axis=-1) == labels).sum())

    def _forward(self, x: NDArray[Any], *, training: bool) -> NDArray[Any]:
        for module in self._modules:
            x = module.forward(x, training)
        return x


def _copied(arrays: Arrays, dtype: Any = None) -> layers.Parameters:
    return {name: np.array(value, dtype) for name, value in arrays.items()}
