"""The order of the training examples, if trainmark decides it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan
from trainmark.errors import DataError
from trainmark.workload.pixels import draw_augmentation
from trainmark.workload.pytorch_draws import Drawn
from trainmark.workload.schedule import Schedule, epoch_sizes
from trainmark.workload.spec import Workload

_STREAM = 1 << 20
"""Random stream of the order of examples; no layer has this number, by which weights are drawn."""
_AUGMENTATION = 1 << 21
"""Random stream of the distortions of images, different from that of the order."""
_EVALUATION = 1 << 23
"""Random stream of the samples that an evaluation uses, different from both others."""


def epoch_plans(
    workload: Workload, examples: int, seed: int, *, inject: bool, drawn: Drawn | None = None
) -> Iterator[EpochPlan]:
    """Yield the epochs of one run one by one, since a long run's orders would fill the memory.

    Args:
        examples: number of training examples.
        seed: seed of the run.
        inject: whether to draw the order of a reshuffled epoch here, not in the framework.
        drawn: what a framework drew, if the schedule asks for it.
    """
    schedule = workload.schedule
    batches = workload.batches
    augment = workload.augmented_input
    one_pass = sum(batches.sizes(examples))
    same = _pass(schedule, examples, seed, 0, 0) if schedule.shuffle in ("once", "never") else None
    epochs = epoch_sizes(schedule, batches, examples)
    if not epochs:
        raise DataError(
            "no step to train",
            expected="at least one whole batch",
            found=f"{examples} training examples",
        )
    for epoch, (sizes, end) in enumerate(zip(epochs, accumulate(map(len, epochs)), strict=True)):
        augmented = None
        if augment is not None:
            augmented = draw_augmentation(
                augment, sum(sizes), _generator(seed, _AUGMENTATION, epoch)
            )
        if drawn is not None:
            yield EpochPlan(
                sizes, drawn.batches[end - len(sizes) : end].ravel(), augmented=augmented
            )
        elif workload.takes_everything:
            yield EpochPlan(sizes, None, whole=True, augmented=augmented)
        elif schedule.shuffle == "every-epoch" and not inject:
            yield EpochPlan(sizes, None, augmented=augmented)
        elif schedule.shuffle == "with-replacement":
            draws = _generator(seed, _STREAM, epoch + 1).random(sum(sizes))
            yield EpochPlan(sizes, np.floor(draws * examples).astype(np.int64), augmented=augmented)
        else:
            passes = -(-sum(sizes) // one_pass)
            orders = [
                _pass(schedule, examples, seed, epoch, index) if same is None else same
                for index in range(passes)
            ]
            order = np.concatenate([order[:one_pass] for order in orders])[: sum(sizes)]
            yield EpochPlan(sizes, order, augmented=augmented)


def evaluation_sample(
    workload: Workload, split: str, examples: int, seed: int, index: int
) -> NDArray[np.int64] | None:
    """Return the examples of an evaluation, drawn with replacement; None evaluates the whole split.

    Args:
        examples: number of examples in the split.
        index: number of the evaluation, from 0.
    """
    if workload.metrics.sample is None:
        return None
    size = examples if workload.batches.size == "full" else workload.batches.size
    rng = _generator(seed, _EVALUATION, index, int(split == "test"))
    return np.floor(rng.random(workload.metrics.sample * size) * examples).astype(np.int64)


def _pass(
    schedule: Schedule, examples: int, seed: int, epoch: int, index: int
) -> NDArray[np.int64]:
    if schedule.shuffle == "never":
        return np.arange(examples)
    place = [0, 0] if schedule.shuffle == "once" else [epoch + 1, index]
    return np.argsort(_generator(seed, _STREAM, *place).random(examples), kind="stable")


def _generator(*place: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(place))
