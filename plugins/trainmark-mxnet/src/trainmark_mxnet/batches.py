"""Batches for ``Module.fit`` from ``NDArrayIter``: with its own shuffle, or in a given order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import mxnet as mx
import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan
from trainmark.workload.spec import Workload
from trainmark_mxnet import pixels

Descriptions = tuple[list[mx.io.DataDesc], list[mx.io.DataDesc]]


class Stretch(mx.io.DataIter):
    """The next steps of an epoch: ``fit`` trains until an iterator ends.

    Args:
        described: names, shapes and types of the inputs and the labels.
        before: called with the size of each batch when ``fit`` takes it, after the update with the
            previous batch.
    """

    def __init__(
        self,
        batches: Iterator[mx.io.DataBatch],
        steps: int,
        described: Descriptions,
        before: Callable[[int], None],
    ) -> None:
        super().__init__()
        self.provide_data, self.provide_label = described
        self._batches = batches
        self._left = steps
        self._before = before

    def next(self) -> mx.io.DataBatch:
        """Return one batch."""
        if not self._left:
            raise StopIteration
        self._left -= 1
        batch = next(self._batches)
        self._before(len(batch.label[0]))
        return batch

    def reset(self) -> None:
        """Do nothing: ``fit`` calls this at its end, and the next stretch continues from here."""


class Epochs:
    """The training set, as batches of one epoch at a time.

    Args:
        images: network input, or bytes if they are distorted later, ``[examples, ...]``.
        labels: true classes, ``[examples]``.
        device: device of the network; a batch of the whole set is copied there once.
        seed: seed of the shuffles.
    """

    def __init__(
        self,
        workload: Workload,
        images: mx.nd.NDArray,
        labels: mx.nd.NDArray,
        device: mx.Context,
        seed: int,
    ) -> None:
        self._workload = workload
        self._images = images
        self._labels = labels
        self._device = device
        np.random.seed(seed % 2**32)  # what NDArrayIter shuffles with
        # Its shuffle converts everything to float32: wrong for float64, and four times the memory
        # for bytes.
        self._shuffles_itself = images.dtype == np.float32
        self._shuffled: mx.io.NDArrayIter | None = None
        self._order: NDArray[np.int64] | None = None
        self._ordered: list[mx.io.NDArrayIter] = []

    def prepare(self, plan: EpochPlan) -> None:
        """Move the set to the device of ``plan``, or put it in order; epochs with the same order
        reuse the result."""
        if plan.whole:
            self._images = self._images.as_in_context(self._device)
            self._labels = self._labels.as_in_context(self._device)
        elif plan.order is not None:
            self._put_in_order(plan.order, plan.sizes)

    def batches(self, plan: EpochPlan) -> Iterator[mx.io.DataBatch]:
        """Return the batches of one epoch."""
        if plan.whole:
            return itertools.repeat(self._batch(self._images, self._labels), len(plan.sizes))
        if plan.order is None and self._shuffles_itself:
            return self._freshly_shuffled(plan.sizes)
        self._put_in_order(self._draw(plan.sizes) if plan.order is None else plan.order, plan.sizes)
        return self._one_after_another(plan.sizes)

    def _freshly_shuffled(self, sizes: Sequence[int]) -> Iterator[mx.io.DataBatch]:
        if self._shuffled is None:
            last = "discard" if self._workload.batches.last == "drop" else "pad"
            self._shuffled = mx.io.NDArrayIter(self._images, self._labels, sizes[0], True, last)
        else:
            self._shuffled.reset()
        for size in sizes:
            try:
                taken = self._shuffled.next()
            except StopIteration:
                self._shuffled.reset()
                taken = self._shuffled.next()
            yield self._batch(taken.data[0][:size], taken.label[0][:size])  # without padding

    def _one_after_another(self, sizes: Sequence[int]) -> Iterator[mx.io.DataBatch]:
        for each in self._ordered:
            each.reset()
        for size, taken in zip(sizes, itertools.chain(*self._ordered), strict=True):
            yield self._batch(taken.data[0][:size], taken.label[0][:size])

    def _put_in_order(self, order: NDArray[np.int64], sizes: Sequence[int]) -> None:
        if self._order is not None and np.array_equal(order, self._order):
            return
        self._order = order
        self._ordered = []
        start = 0
        for batch, examples in _runs(sizes):
            taken = mx.nd.array(
                order[start : start + examples], ctx=self._labels.context, dtype="int32"
            )
            images = mx.nd.take(self._images, taken)
            labels = mx.nd.take(self._labels, taken)
            self._ordered.append(mx.io.NDArrayIter(images, labels, batch))
            start += examples

    def _draw(self, sizes: Sequence[int]) -> NDArray[np.int64]:
        """Draw a new order for each pass over the set."""
        count = len(self._labels)
        one_pass = sum(self._workload.batches.sizes(count))
        passes = [np.random.permutation(count)[:one_pass] for _ in range(0, sum(sizes), one_pass)]
        return np.concatenate(passes)[: sum(sizes)]

    def _batch(self, images: mx.nd.NDArray, labels: mx.nd.NDArray) -> mx.io.DataBatch:
        if self._workload.input.distortions is not None:
            images = pixels.distort(self._workload.input, images, labels.dtype)
        return mx.io.DataBatch([images], [labels])


def _runs(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield batch size and examples of each run of batches that one ``NDArrayIter`` covers; its
    last may be smaller."""
    start = 0
    for index, size in enumerate(sizes):
        if index + 1 == len(sizes) or size < sizes[start] or sizes[index + 1] > size:
            yield sizes[start], sum(sizes[start : index + 1])
            start = index + 1
