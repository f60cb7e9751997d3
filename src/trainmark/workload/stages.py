"""A network cut into stages that take about as long as each other."""

from __future__ import annotations

import itertools

from trainmark.errors import Unsupported
from trainmark.workload.model import LayerPlan, Model

Stage = tuple[LayerPlan, ...]


def cut(model: Model, count: int) -> tuple[Stage, ...]:
    """``count`` neighbouring stages, each with weights, of which the longest is as short as can be.

    A layer without weights stays with the one before it. The length of a stage is the floating-point operations of a
    training step in it.

    Raises:
        Unsupported: fewer layers with weights than stages.
    """
    blocks = _blocks(model)
    if count > len(blocks):
        raise Unsupported(
            f"the network can't be cut into {count} stages",
            expected=f"at most {len(blocks)}, one for each layer with weights",
            found=str(count),
        )
    cost = [sum(plan.training_macs for plan in block) for block in blocks]

    def longest(cuts: tuple[int, ...]) -> int:
        return max(sum(cost[start:end]) for start, end in itertools.pairwise((0, *cuts, len(blocks))))

    best = min(itertools.combinations(range(1, len(blocks)), count - 1), key=longest)
    edges = itertools.pairwise((0, *best, len(blocks)))
    return tuple(tuple(itertools.chain.from_iterable(blocks[start:end])) for start, end in edges)


def _blocks(model: Model) -> list[Stage]:
    """Each layer with weights and what follows it; what comes before the first belongs to it."""
    blocks: list[list[LayerPlan]] = [[]]
    for plan in model.layers:
        if plan.kernel_shape and any(before.kernel_shape for before in blocks[-1]):
            blocks.append([])
        blocks[-1].append(plan)
    return [tuple(block) for block in blocks]
