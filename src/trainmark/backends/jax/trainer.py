"""Code shared by both styles.

It has one training step as a pure function, evaluation, and reading results.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan, Evaluation, Job, SplitName, Steps
from trainmark.backends.engines import jax as engines
from trainmark.backends.jax import losses, network, optimizers, precision
from trainmark.backends.jax.network import Attend, Parameters
from trainmark.backends.parts import loss_left
from trainmark.backends.stepwise import Arrays, State
from trainmark.workload.losses import sums
from trainmark.workload.model import Weights
from trainmark.workload.optimizers import slots_of
from trainmark.workload.pixels import prepare


class Training(NamedTuple):
    """The state that a step changes.

    Args:
        weights: the trained weights.
        running: the weights that are not trained.
        average: moving averages of the trained weights; empty if the workload has none.
        step: number of the next step, from 0.
    """

    weights: Parameters
    running: Parameters
    optimizer: optimizers.State
    average: Parameters
    step: Array


class JaxTrainer:
    """The style-independent part of a trainer.

    Args:
        device: JAX's object for the first device.
        place: where arrays are put; by default that device.
    """

    def __init__(self, job: Job, device: Any, place: Any = None) -> None:
        options = job.options
        precision.set_arithmetic(options.precision)
        self._job = job
        self._workload = job.workload
        self._model = job.model
        self._data = job.data
        self._device = device
        self._place = place or device
        self._rng = np.random.default_rng([options.seed, 1])
        arithmetic = precision.ARITHMETIC[options.precision]
        self._dtype = arithmetic.parameters
        self._network = network.Network(
            job.model, arithmetic.factors, self._attend(arithmetic.factors)
        )
        loss = loss_left(job.workload, options)
        self._loss = losses.build(loss)
        self._sums = sums(loss)
        self._devices = options.layout.ranks if options.layout else 1
        self._optimizer = None if "optimizer" in options.without else job.workload.optimizer
        keeps_gradients = options.keeps_gradients or self._optimizer is None
        self._remembered, self._update = optimizers.build(
            self._optimizer, keeps_gradients=keeps_gradients
        )
        self._l2 = job.model.l2
        self._forward = jax.jit(self._outputs)
        self._judge = jax.jit(self._judged)
        self._training: Training
        self._key = self._put(jax.random.key(options.seed))

    def restart(self, weights: Weights) -> None:
        """Start again from these weights, with the random numbers of a new trainer."""
        self._rng = np.random.default_rng([self._job.options.seed, 1])
        self.load(weights)

    def load(self, weights: Weights) -> None:
        """Put weights and a new optimiser on the device."""
        running = self._taken_in(weights)
        taken = {name: running.pop(name) for name in self._model.trained}
        average = {}
        if self._workload.weight_average:
            average = {name: value.copy() for name, value in taken.items()}
        state = {
            slot: {name: self._zeros_like(value) for name, value in taken.items()}
            for slot in self._remembered
        }
        self._training = Training(taken, running, state, average, self._put(np.int32(0)))

    def weights(self) -> Weights:
        """Return a copy of the weights on the host."""
        return _copied(self._weights(), np.float32)

    def averaged(self) -> Weights:
        """Return a copy of their average on the host, or of the weights if there is none."""
        return _copied(self._weights(averaged=True), np.float32)

    def synchronize(self) -> None:
        """Wait for the last queued step, which depends on all before it."""
        jax.block_until_ready(self._training)

    def read(self, results: Any) -> Steps:
        """Read parts of ``[steps, 3]`` to the host."""
        host = np.concatenate([np.asarray(part, np.float64).reshape(-1, 3) for part in results])
        return Steps.from_rows(host, has_l2=bool(self._l2))

    def evaluate(self, split: SplitName, examples: NDArray[np.int64] | None = None) -> Evaluation:
        """Evaluate a split in large batches, with the averaged weights if there is an average."""
        weights = self._weights(averaged=True)
        part = getattr(self._data, split)
        batch = self._workload.evaluation_batch
        count = len(part) if examples is None else len(examples)
        found = np.zeros(2)
        for start in range(0, count, batch):
            some: Any = slice(start, start + batch)
            some = some if examples is None else examples[some]
            y = self._put(part.labels[some].astype(np.int32))
            found += np.asarray(self._judge(weights, self._input(part.images[some]), y), np.float64)
        loss, hits = found / count
        return Evaluation(float(loss), float(hits) / math.prod(self._workload.input.outputs_shape))

    def outputs(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the outputs of the last layer, without dropout."""
        return np.asarray(self._forward(self._weights(), self._input(images)), np.float64)

    def _input(self, images: NDArray[Any]) -> Array:
        """Convert stored images or tokens to network input, undistorted."""
        return self._put(prepare(self._workload.input, images, self._dtype))

    def _weights(self, *, averaged: bool = False) -> Parameters:
        """Return all weights on the device.

        For trained weights, these are the averages, if there are any.
        """
        now = self._training
        return {**((averaged and now.average) or now.weights), **now.running}

    def set_state(self, state: State) -> None:
        """Put weights, optimiser and average on the device."""
        self.load(dict(state.weights))
        slots = {slot: self._taken_in(arrays) for slot, arrays in state.slots.items()}
        average = self._taken_in(state.average)
        step = self._put(np.int32(state.step))
        optimizer = {**self._training.optimizer, **slots}
        self._training = self._training._replace(optimizer=optimizer, average=average, step=step)

    def state(self) -> State:
        """Copy weights, optimiser and average to the host."""
        now = self._training
        slots = {slot: _copied(now.optimizer[slot]) for slot in slots_of(self._workload.optimizer)}
        return State(_copied(self._weights()), slots, _copied(now.average), int(now.step))

    def gradients(self) -> Arrays:
        """Copy the gradients of the last step to the host."""
        return _copied(self._training.optimizer[optimizers.GRADIENTS])

    def activations(self, examples: NDArray[np.int64], *, training: bool) -> Arrays:
        """Run the layers on training examples."""
        x = self._input(self._data.train.images[examples])
        found = self._network.outputs(self._weights(), x, self._key if training else None, {})
        return _copied({"input": x, **dict(found)})

    def _taken_in(self, arrays: Arrays) -> Parameters:
        return {name: self._put(np.asarray(value, self._dtype)) for name, value in arrays.items()}

    def settings(self) -> dict[str, Any]:
        """Return JAX's current settings."""
        return engines.settings()

    def device_peak_bytes(self) -> int | None:
        """Return XLA's peak memory on the device."""
        return engines.peak_bytes(self._device)

    def _training_set(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return images, prepared unless distorted later, and labels; on the host.

        Text windows stay views.
        """
        images = self._data.train.images
        labels = self._data.train.labels
        if self._workload.is_text:
            return images, labels
        labels = labels.astype(np.int32)
        return (
            images if self._job.distorts else prepare(self._workload.input, images, self._dtype)
        ), labels

    def _order_of(self, plan: EpochPlan) -> NDArray[np.int64] | None:
        return plan.drawn(
            self._workload.batches, len(self._data.train.labels), self._rng.permutation
        )

    def _learn(self, training: Training, x: Array, y: Array, key: Array) -> tuple[Training, Array]:
        """Forward, backward and update on one batch; returns loss, L2 loss and hits as ``[3]``.

        Args:
            key: random key for dropout; the number of the step is folded in here.
        """
        key = jax.random.fold_in(key, training.step)
        # The batch counts as that of all devices, since their gradients are averaged.
        summed = y.size * self._devices if self._sums else 1

        def total(weights: Parameters) -> tuple[Array, tuple[Array, Array, Array, Parameters]]:
            outputs, running = self._network({**weights, **training.running}, x, key)
            l2_loss = sum(
                (0.5 * l2 * jnp.sum(weights[name] ** 2) for name, l2 in self._l2.items()),
                jnp.zeros(()),
            )
            loss = self._loss(outputs, y)
            return loss * summed + l2_loss, (loss + l2_loss, l2_loss, outputs, running)

        gradients, (loss, l2_loss, outputs, running) = jax.grad(total, has_aux=True)(
            training.weights
        )
        gradients, running = self._shared((gradients, running))
        weights, optimizer = self._update(
            training.weights, training.optimizer, gradients, training.step
        )
        row = jnp.stack([value.astype(loss.dtype) for value in (loss, l2_loss, _hits(outputs, y))])
        return Training(
            weights, running, optimizer, self._averaged(training, weights), training.step + 1
        ), row

    def _shared(self, found: tuple[Parameters, Parameters]) -> tuple[Parameters, Parameters]:
        """Return gradients and running averages for the update.

        With several devices, they are the mean over all of them.
        """
        return found

    def _attend(self, factors: Any) -> Attend | None:  # noqa: ARG002
        """Return how to compute attention without dropout on factors of this type.

        The result is None for the definition.
        """
        return None

    def _averaged(self, training: Training, weights: Parameters) -> Parameters:
        if self._workload.weight_average is None or self._optimizer is None:
            return training.average
        t = training.step.astype(self._dtype)
        decay = jnp.minimum(self._workload.weight_average.decay, (1 + t) / (10 + t)).astype(
            self._dtype
        )
        return {
            name: value + (1 - decay) * (weights[name] - value)
            for name, value in training.average.items()
        }

    def _outputs(self, weights: Parameters, x: Array) -> Array:
        """Return the network's outputs without dropout."""
        return self._network(weights, x, None)[0]

    def _judged(self, weights: Parameters, x: Array, y: Array) -> Array:
        """Return summed loss and hits of one batch."""
        outputs = self._forward(weights, x)
        return jnp.stack([self._loss(outputs, y) * len(y), _hits(outputs, y).astype(outputs.dtype)])

    def _put(self, value: Any) -> Array:
        return jax.device_put(value, self._place)

    def _zeros_like(self, value: Array) -> Array:
        # Unlike np.full, jax.numpy.zeros_like compiles a program for each shape, and np.zeros would
        # leave it to the first step to write to the memory.
        return self._put(np.full(value.shape, 0, value.dtype))


def _copied(arrays: Parameters, dtype: Any = np.float64) -> dict[str, NDArray[Any]]:
    return {name: np.array(value, dtype) for name, value in arrays.items()}


def _hits(outputs: Array, labels: Array) -> Array:
    return jnp.sum(jnp.argmax(outputs, axis=-1) == labels)
