"""Cut a network into stages of about equal duration."""

from __future__ import annotations

import itertools

from trainmark.errors import Unsupported
from trainmark.workload.model import LayerPlan, Model

Stage = tuple[LayerPlan, ...]


def cut(model: Model, count: int) -> tuple[Stage, ...]:
    """Cut the network into ``count`` consecutive stages, each with weights.

    The longest stage is as short as possible.

    A layer without weights stays with the one before it. The length of a stage is its number of
    floating-point operations in a training step.

    Raises:
        Unsupported: there are fewer layers with weights than stages.
    """
    if any(plan.table for plan in model.layers):
        raise Unsupported(
            "a network with a tied head can't be cut into stages",
            expected="a separate output layer",
        )
    blocks = _blocks(model)
    if count > len(blocks):
        raise Unsupported(
            f"the network can't be cut into {count} stages",
            expected=f"at most {len(blocks)}, one for each layer with weights",
            found=str(count),
        )
    cost = [sum(plan.training_macs for plan in block) for block in blocks]

    def longest(cuts: tuple[int, ...]) -> int:
        return max(
            sum(cost[start:end]) for start, end in itertools.pairwise((0, *cuts, len(blocks)))
        )

    best = min(itertools.combinations(range(1, len(blocks)), count - 1), key=longest)
    edges = itertools.pairwise((0, *best, len(blocks)))
    return tuple(tuple(itertools.chain.from_iterable(blocks[start:end])) for start, end in edges)


def _blocks(model: Model) -> list[Stage]:
    """Group each layer with weights with the layers that follow it.

    The first group includes those before.
    """
    blocks: list[list[LayerPlan]] = [[]]
    for plan in model.layers:
        if _has_weights(plan) and any(map(_has_weights, blocks[-1])):
            blocks.append([])
        blocks[-1].append(plan)
    return [tuple(block) for block in blocks]


def _has_weights(plan: LayerPlan) -> bool:
    return bool(plan.weights) or any(map(_has_weights, (*plan.body, *plan.shortcut)))
