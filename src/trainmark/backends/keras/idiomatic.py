"""``idiomatic``: ``model.fit`` as in Keras's tutorials.

It trains on NumPy arrays that were prepared up front.

``compiled`` is the same ``fit`` after ``compile(jit_compile=True)``.

A whole epoch with Keras's shuffle is one ``fit`` on the arrays, and a given order is one ``fit`` on
arrays put in that order. Everything else (batches of changing size, distorted images, windows) is
one ``fit`` on a ``PyDataset``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan, Job, Steps, no_tick
from trainmark.backends.keras.batches import Batch, Indices, OrderedBatches
from trainmark.backends.keras.engine import Engine
from trainmark.backends.keras.report import Report
from trainmark.backends.keras.trainer import KerasTrainer, seed_of
from trainmark.workload.pixels import Input, augment, distort

_ORDER = 1
"""Random stream of the order of examples."""
_DISTORTION = 2
"""Random stream of the distortions of images, different from that of the order."""


class KerasIdiomaticTrainer(KerasTrainer):
    """``model.fit``."""

    ticks_between_steps = True

    def __init__(self, job: Job, engine: Engine) -> None:
        super().__init__(job, engine)
        if not job.distorts:
            self._inputs("train")
        self._epoch = -1
        self._passes = 0
        self._plan = EpochPlan((), None)
        self._ordered: NDArray[Any] = np.empty(0)

    def compile(self, plan: EpochPlan) -> bool:
        """Train on batches of each size, and restore the state; False if Keras compiles nothing.

        Each size trains twice, since ``torch.compile`` compiles a first step without gradients
        separately.
        """
        on_torch = keras.config.backend() == "torch"
        if self._network.run_eagerly or (on_torch and not self._network.jit_compile):
            return False
        sizes = tuple(dict.fromkeys(plan.sizes))
        with self._put_back():
            if self._shuffled_by_keras(plan, len(plan.sizes)):
                report = Report(no_tick)
                shuffle = not plan.whole
                self._fit_arrays(sum(sizes), sizes[0], report, epochs=2, shuffle=shuffle)
            else:
                # A part of an epoch may lack the smaller last batch.
                for some in 2 * [*{sizes[:1], sizes}]:
                    self._fit_given(plan, np.arange(sum(some)), some, 0, Report(no_tick))
        return True

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Start from the first batch of ``plan``."""
        self._plan = plan
        self._step = 0
        self._order = plan.order
        self._epoch += 1

    def train(self, steps: int, tick: Callable[[], None]) -> Steps:
        """Run one ``fit``."""
        sizes = self._plan.sizes[self._step : self._step + steps]
        report = Report(tick)
        if "input" in self._job.options.without:
            x, y = self._batch("train", slice(sizes[0]))
            self._network.fit(
                self._engine.repeated(x, y, steps), shuffle=False, verbose=0, callbacks=[report]
            )
        elif self._plan.whole and self._plan.augmented is None:
            self._fit_arrays(sizes[0], sizes[0], report, epochs=steps, shuffle=False)
        elif self._shuffled_by_keras(self._plan, steps):
            left = steps
            one_pass = len(self._workload.batches.sizes(len(self._labels["train"])))
            while left:
                self._engine.reseed(seed_of(self._job.options.seed, self._passes))
                self._fit_arrays(len(self._labels["train"]), sizes[0], report, most=left)
                self._passes += 1
                left -= min(left, one_pass)
        else:
            start = sum(self._plan.sizes[: self._step])
            self._fit_given(
                self._plan, self._taken()[start : start + sum(sizes)], sizes, self._step, report
            )
        self._step += steps
        predictions = math.prod(self._workload.input.outputs_shape)
        return report.steps([size * predictions for size in sizes], has_l2=self._network.has_l2)

    def read(self, results: Any) -> Steps:
        """Return the results, which ``fit`` has already fetched."""
        return results

    def _shuffled_by_keras(self, plan: EpochPlan, steps: int) -> bool:
        """Whether ``fit`` on the arrays gives the batches of these steps.

        It does for whole epochs, and for the whole set each time.
        """
        if plan.augmented is not None or self._workload.is_text:
            return False
        whole_epoch = plan.order is None and steps == len(plan.sizes)
        return plan.whole or (not self._job.distorts and whole_epoch)

    def _fit_arrays(
        self,
        examples: int,
        size: int,
        report: Report,
        *,
        epochs: int = 1,
        shuffle: bool = True,
        most: int | None = None,
    ) -> None:
        x = self._inputs("train")[:examples]
        y = self._labels["train"][:examples]
        steps = examples // size if self._workload.batches.last == "drop" else None
        if most is not None and most < -(-examples // size):
            steps = most
        self._network.fit(
            x,
            y,
            batch_size=size,
            epochs=epochs,
            steps_per_epoch=steps,
            shuffle=shuffle,
            verbose=0,
            callbacks=[report],
        )

    def _fit_given(
        self, plan: EpochPlan, taken: Indices, sizes: tuple[int, ...], first: int, report: Report
    ) -> None:
        """Run one ``fit`` on these examples in this order.

        ``first`` is the number of the first batch in its epoch.
        """
        as_stored = plan.augmented is None and not self._job.distorts and not self._workload.is_text
        if as_stored and _are_equal(plan.sizes):
            images = self._inputs("train")
            labels = self._labels["train"][taken]
            if len(self._ordered) != len(taken):
                self._ordered = np.empty_like(images, shape=(len(taken), *images.shape[1:]))
            # The array is used again, since a new one would cost page faults.
            np.take(images, taken, axis=0, out=self._ordered, mode="clip")
            self._network.fit(
                self._ordered,
                labels,
                batch_size=plan.sizes[0],
                shuffle=False,
                verbose=0,
                callbacks=[report],
            )
        else:
            batches = OrderedBatches(
                self._training_batch, np.split(taken, np.cumsum(sizes)[:-1]), first
            )
            self._network.fit(batches, shuffle=False, verbose=0, callbacks=[report])

    def _training_batch(self, taken: Indices, step: int) -> Batch:
        spec = self._workload.input
        if isinstance(spec, Input) and spec.distortions is not None:
            rng = np.random.default_rng(
                [self._job.options.seed, _DISTORTION, self._epoch + 1, step]
            )
            x = distort(spec, self._data.train.images[taken], rng, self._dtype)
            return x, self._labels["train"][taken]
        x, y = self._batch("train", taken)
        if isinstance(spec, Input) and self._plan.augmented is not None:
            start = sum(self._plan.sizes[:step])
            x = augment(spec, x, self._plan.augmented[start : start + len(taken)])
        return x, y

    def _taken(self) -> Indices:
        """Return the examples of the epoch in order of use; drawn if no order is given."""
        if self._plan.whole:
            return np.tile(np.arange(len(self._data.train)), len(self._plan.sizes))
        if self._order is None:
            rng = np.random.default_rng([self._job.options.seed, _ORDER, self._epoch])
            self._order = self._plan.drawn(
                self._workload.batches, len(self._labels["train"]), rng.permutation
            )
        assert self._order is not None
        return self._order


def _are_equal(sizes: Sequence[int]) -> bool:
    """Whether all batches have the same size, except for a smaller last one."""
    return set(sizes[:-1]) <= {sizes[0]} and sizes[-1] <= sizes[0]
