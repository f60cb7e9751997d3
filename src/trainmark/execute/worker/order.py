"""The order of the training examples where trainmark decides it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan
from trainmark.workload.schedule import Batches, Schedule, epoch_sizes

_STREAM = 1 << 20  # keeps orders apart from the weights, which use [seed, layer]


def epoch_plans(schedule: Schedule, batches: Batches, examples: int, seed: int, *, inject: bool) -> Iterator[EpochPlan]:
    """The epochs of one run, one at a time: a long run's orders would fill the memory.

    Args:
        examples: of the training set.
        seed: of the run.
        inject: draw the order of a reshuffled epoch here, instead of leaving it to the framework.
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
