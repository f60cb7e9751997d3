"""The backend and its trainer."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import (
    Capabilities,
    Device,
    EpochPlan,
    Evaluation,
    Options,
    SplitName,
    Steps,
    require_support,
)
from trainmark.data.dataset import Dataset
from trainmark.workload.model import Model, Weights
from trainmark.workload.optimizers import SGD, learning_rate_at
from trainmark.workload.pixels import distort, prepare
from trainmark.workload.spec import Workload
from trainmark_scratch.network import backward, cross_entropy, forward

EVALUATION_BATCH = 500


class ScratchBackend:
    """Multilayer perceptrons, on the CPU, in float32."""

    def capabilities(self) -> Capabilities:
        """Return what is supported, each kind in full: ``sgd`` with both momentum forms, ``dense``
        with its L2 term."""
        cpu = Device("cpu", platform.processor() or platform.machine(), "cpu")
        kinds = frozenset({"flatten", "dense", "relu", "softmax-cross-entropy", "sgd"})
        return Capabilities(
            "scratch", "0.1.0", ("idiomatic",), (cpu,), kinds, {"numpy": np.__version__}
        )

    def trainer(
        self, workload: Workload, model: Model, data: Dataset, options: Options
    ) -> ScratchTrainer:
        """Create a trainer; rejects what the backend does not support, before anything is
        trained."""
        require_support(self.capabilities(), workload, options)
        return ScratchTrainer(workload, model, data, options)


class ScratchTrainer:
    """Trains synchronously, so nothing is ever pending, and there is nothing to compile."""

    def __init__(self, workload: Workload, model: Model, data: Dataset, options: Options) -> None:
        assert isinstance(workload.optimizer, SGD)
        self._workload = workload
        self._model = model
        self._data = data
        self._optimizer = workload.optimizer
        self._rng = np.random.default_rng(options.seed)
        self._l2 = {plan.kernel_name: plan.l2 for plan in model.weighted_layers if plan.l2}

    def load(self, weights: Weights) -> None:
        """Copy the weights, and reset the optimiser to step 0."""
        self._weights = {name: value.copy() for name, value in weights.items()}
        self._average = {name: value.copy() for name, value in weights.items()}
        self._momentum = {name: np.zeros_like(value) for name, value in weights.items()}
        self._step = 0

    def compile(self, plan: EpochPlan) -> bool:  # noqa: ARG002
        """Return False: nothing to compile."""
        return False

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Choose the examples of every step; shuffled here if no order is given."""
        examples = len(self._data.train)
        if plan.whole:
            order = np.tile(np.arange(examples), len(plan.sizes))
        elif plan.order is not None:
            order = plan.order
        else:
            one_pass = sum(self._workload.batches.sizes(examples))
            passes = -(-sum(plan.sizes) // one_pass)
            order = np.concatenate(
                [self._rng.permutation(examples)[:one_pass] for _ in range(passes)]
            )
        # and a remainder if an epoch ends early
        self._batches = iter(np.split(order, np.cumsum(plan.sizes)))

    def train(self, steps: int, tick: Callable[[], None]) -> list[tuple[float, float, int]]:
        """Return loss, L2 loss and hits of each step."""
        results = []
        for _ in range(steps):
            results.append(self._train_on(next(self._batches)))
            tick()
        return results

    def synchronize(self) -> None:
        """Do nothing: nothing is ever pending."""

    def read(self, results: Any) -> Steps:
        """Return the results of :meth:`train` as arrays."""
        losses, l2_losses, hits = (np.array(column) for column in zip(*results, strict=True))
        return Steps(losses, l2_losses if self._l2 else None, hits)

    def evaluate(self, split: SplitName) -> Evaluation:
        """Evaluate a split, with the averaged weights if the workload keeps an average."""
        weights = self._average if self._workload.weight_average else self._weights
        part = self._data.train if split == "train" else self._data.test
        loss = 0.0
        hits = 0
        for start in range(0, len(part), EVALUATION_BATCH):
            images = part.images[start:][:EVALUATION_BATCH]
            labels = part.labels[start:][:EVALUATION_BATCH]
            logits = forward(self._model, weights, prepare(self._workload.input, images))[-1]
            loss += float(cross_entropy(logits, labels)[0].sum(dtype=np.float64))
            hits += int((logits.argmax(axis=1) == labels).sum())
        return Evaluation(loss / len(part), hits / len(part))

    def outputs(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the logits."""
        return forward(self._model, self._weights, prepare(self._workload.input, images))[
            -1
        ].astype(np.float64)

    def weights(self) -> Weights:
        """Return a copy of the weights."""
        return {name: value.copy() for name, value in self._weights.items()}

    def averaged(self) -> Weights:
        """Return a copy of their average, or of the weights if there is none."""
        kept = self._average if self._workload.weight_average else self._weights
        return {name: value.copy() for name, value in kept.items()}

    def settings(self) -> dict[str, Any]:
        """Return the thread setting of NumPy's matrix library."""
        return {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")}

    def device_peak_bytes(self) -> int | None:
        """Return None: the device is the host."""
        return None

    def _train_on(self, examples: NDArray[np.int64]) -> tuple[float, float, int]:
        labels = self._data.train.labels[examples]
        x = distort(self._workload.input, self._data.train.images[examples], self._rng)
        values = forward(self._model, self._weights, x)
        losses, gradient = cross_entropy(values[-1], labels)
        l2_loss = sum(
            0.5 * l2 * float(np.square(self._weights[name]).sum()) for name, l2 in self._l2.items()
        )
        self._update(backward(self._model, self._weights, values, gradient))
        hits = int((values[-1].argmax(axis=1) == labels).sum())
        return float(losses.mean(dtype=np.float64)) + l2_loss, l2_loss, hits

    def _update(self, gradients: Weights) -> None:
        spec = self._optimizer
        rate = np.float32(learning_rate_at(self._optimizer, self._step))
        for name, weight in self._weights.items():
            gradient = gradients[name]
            momentum = self._momentum[name]
            if spec.decay_biases or not name.endswith(".bias"):
                gradient = gradient + np.float32(spec.weight_decay) * weight
            momentum *= np.float32(spec.momentum)
            if spec.momentum_form == "velocity":
                momentum -= rate * gradient
                weight += momentum
            else:
                momentum += gradient
                weight -= rate * momentum
        if self._workload.weight_average:
            decay = np.float32(self._workload.weight_average.decay_at(self._step))
            for name, average in self._average.items():
                average += (1 - decay) * (self._weights[name] - average)
        self._step += 1
