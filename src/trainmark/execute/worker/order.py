"""The order of the training examples, if trainmark decides it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan
from trainmark.workload.schedule import Batches, Schedule, epoch_sizes

_STREAM = 1 << 20  # a random stream different from those of weights, which use [seed, layer]


def epoch_plans(schedule: Schedule, batches: Batches, examples: int, seed: int, *, inject: bool) -> Iterator[EpochPlan]:
    """Yield the epochs of one run one by one, since a long run's orders would fill the memory.

    Args:
        examples: number of training examples.
        seed: seed of the run.
        inject: whether to draw the order of a reshuffled epoch here, not in the framework.
    """
    one_pass = sum(batches.sizes(examples))
    same = _pass(schedule, examples, seed, 0, 0) if schedule.shuffle != "every-epoch" else None
    for epoch, sizes in enumerate(epoch_sizes(schedule, batches, examples)):
        if batches.size == "full" and schedule.shuffle == "never":
            yield EpochPlan(sizes, None, whole=True)
        elif schedule.shuffle == "every-epoch" and not inject:
            yield EpochPlan(sizes, None)
        else:
            passes = -(-sum(sizes) // one_pass)
            drawn = [_pass(schedule, examples, seed, epoch, index) if same is None else same for index in range(passes)]
            yield EpochPlan(sizes, np.concatenate([order[:one_pass] for order in drawn])[: sum(sizes)])


def _pass(schedule: Schedule, examples: int, seed: int, epoch: int, index: int) -> NDArray[np.int64]:
    if schedule.shuffle == "never":
        return np.arange(examples)
    place = [0, 0] if schedule.shuffle == "once" else [epoch + 1, index]
    rng = np.random.Generator(np.random.PCG64([seed, _STREAM, *place]))
    return np.argsort(rng.random(examples), kind="stable")
