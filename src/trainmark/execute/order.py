"""The order of the training examples where trainmark decides it."""

from __future__ import annotations

import numpy as np

from trainmark.backends.base import EpochPlan
from trainmark.workload.schedule import Batches, Schedule, epoch_sizes

_STREAM = 1 << 20  # keeps orders apart from the weights, which use [seed, layer]


def epoch_plans(schedule: Schedule, batches: Batches, examples: int, seed: int, *, inject: bool) -> list[EpochPlan]:
    """The epochs of one run.

    Args:
        examples: of the training set.
        seed: of the run.
        inject: draw the order of a reshuffled epoch here, instead of leaving it to the framework.
    """
    one_pass = sum(batches.sizes(examples))
    plans = []
    for epoch, sizes in enumerate(epoch_sizes(schedule, batches, examples)):
        whole = batches.size == "full" and schedule.shuffle == "never"
        if schedule.shuffle == "every-epoch" and not inject:
            plans.append(EpochPlan(sizes, None))
            continue
        passes = -(-sum(sizes) // one_pass) if one_pass else 0
        drawn = [_pass(schedule, examples, seed, epoch, index)[:one_pass] for index in range(passes)]
        plans.append(EpochPlan(sizes, np.concatenate(drawn)[: sum(sizes)], whole))
    return plans


def _pass(schedule: Schedule, examples: int, seed: int, epoch: int, index: int) -> np.ndarray:
    if schedule.shuffle == "never":
        return np.arange(examples)
    place = [0, 0] if schedule.shuffle == "once" else [epoch + 1, index]
    rng = np.random.Generator(np.random.PCG64([seed, _STREAM, *place]))
    return np.argsort(rng.random(examples), kind="stable")
