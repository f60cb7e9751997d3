"""The fewest bytes that a training step moves and holds at once.

They are computed from the specification.
"""

from __future__ import annotations

import itertools
import math

from trainmark.workload.layers import Attention, BatchNorm, Conv2D, Dense, LayerNorm, TiedHead
from trainmark.workload.model import Model
from trainmark.workload.optimizers import Optimizer, slots_of

FLOAT32_BYTES = 4
"""Bytes of a number in single precision."""
_KEEPING = (Dense, Conv2D, Attention, TiedHead, BatchNorm, LayerNorm)
"""Layers whose gradients need their inputs."""


def compulsory(
    model: Model, optimizer: Optimizer, batch: float, value_bytes: int = FLOAT32_BYTES
) -> float:
    """Return the bytes that a step moves if the batch is read once.

    Parameters and their states are read and written once.
    """
    updated = 2 + 2 * len(slots_of(optimizer))
    return value_bytes * (batch * math.prod(model.input_shape) + model.parameters * updated)


def held(model: Model, optimizer: Optimizer, value_bytes: int = FLOAT32_BYTES) -> tuple[int, int]:
    """Return the bytes that a step must hold, in all and for each example.

    In all, these are weights, gradients and states; for each example, what backward needs.

    That is the network's output and the inputs of products and normalisations; attention also keeps
    queries, keys, values and their mix.
    """
    # Layers of a shortcut take the input of the body, which is counted there.
    shortcuts = itertools.chain.from_iterable(plan.shortcut for plan in model.every_layer)
    beside = {inner.name for inner in shortcuts}
    kept = math.prod(model.layers[-1].output_shape)
    for plan in model.every_layer:
        if plan.name not in beside and isinstance(plan.layer, _KEEPING):
            inputs = 5 if isinstance(plan.layer, Attention) else 1
            kept += inputs * math.prod(plan.input_shape)
    return FLOAT32_BYTES * model.parameters * (2 + len(slots_of(optimizer))), value_bytes * kept
