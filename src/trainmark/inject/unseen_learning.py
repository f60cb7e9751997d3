"""Why the loss of a training says nothing about whether it learns, as of a GAN or an agent."""

from __future__ import annotations

import sys

from .amounts import Amounts
from .trainings import Trainings

_ENVIRONMENTS = (
    "gymnasium",
    "gym",
    "dm_env",
    "pettingzoo",
    "stable_baselines3",
    "torchrl",
    "gymnax",
    "brax",
)
"""Modules with environments for agents, or with what trains agents in them."""
_LEAST_SHARE = 1 / 20
"""Share of the steps from which on the steps of others between them are a part of the method. The
critic of a GAN may take five steps for one of its generator; agents delay some steps, too."""
_FEWEST = 2
"""Fewest such steps: a single one may belong to another training."""


def why_unseen(trainings: Trainings, amounts: Amounts, steps: int) -> str | None:
    """Return why the loss need not fall while the training learns; None if it should fall.

    Without a loader, what is trained on may be collected by the network itself.

    Args:
        trainings: the optimisers that step.
        amounts: what their steps had.
        steps: number of steps that count.
    """
    least = _LEAST_SHARE * sum(trainings.frameworks.values())
    train = [name for name, its_steps in trainings.frameworks.items() if its_steps >= least]
    if len(train) > 1:
        named = " and ".join(train)
        return f"{named} both train in this process, each with its own losses"
    if trainings.alternations >= max(_FEWEST, _LEAST_SHARE * steps):
        return "several optimisers step in turn, each on a loss of its own, as for a GAN"
    if amounts.are_loaded:
        return None
    environment = next((name for name in _ENVIRONMENTS if name in sys.modules), None)
    if environment is not None:
        return f"the script uses {environment}, and an agent's loss need not fall"
    passes = amounts.passes()
    if passes is not None:
        fewest, most = passes
        return (
            f"its steps have from {fewest:g} to {most:g} forward passes, as those of an agent do, "
            "whose loss need not fall"
        )
    return None
